// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/percentile.h"

#include <cstdint>

namespace verbena::bench {
namespace {

// The largest percentage at which Percentile() is below `value`, or at most `value` if `or_equal`;
// to a part in 2^30. Percentile() grows with the percentage.
double PercentBelow(const Histogram& histogram, uint64_t value, bool or_equal) {
  double low = 0, high = 100;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    const uint64_t at = histogram.Percentile(middle);
    if (at < value || (or_equal && at == value)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

double PercentileUs(const Histogram& latency_ns, double percent) {
  const uint64_t value = latency_ns.Percentile(percent);
  const double exact = static_cast<double>(value);
  if (value == latency_ns.Max()) return exact / 1000;

  const double from_percent = PercentBelow(latency_ns, value, /*or_equal=*/false);
  const double to_percent = PercentBelow(latency_ns, value, /*or_equal=*/true);
  if (to_percent <= from_percent) return exact / 1000;
  const double above = static_cast<double>(latency_ns.Percentile(to_percent + 1e-6));
  const double below = value == latency_ns.Min()
                           ? exact - (above - exact)
                           : static_cast<double>(latency_ns.Percentile(from_percent));
  // Neighbours further away than this are not the counter's steps but different events.
  const double step_max = exact / 8;
  if (above - exact > step_max || exact - below > step_max) return exact / 1000;
  const double from = (below + exact) / 2, to = (exact + above) / 2;
  const double part = (percent - from_percent) / (to_percent - from_percent);
  return (from + part * (to - from)) / 1000;
}

}  // namespace verbena::bench
