// SPDX-License-Identifier: Apache-2.0
//
// One pass: the same call again and again until a limit. A measurement is two passes, a warm-up
// that is thrown away and one that counts. Values; threads as their owner says.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "verbena/base/histogram.h"
#include "verbena/tools/rpc_bench/options.h"

namespace verbena::bench {

struct PassLimits {
  double seconds = 0;
  uint64_t calls_max = std::numeric_limits<uint64_t>::max();  // All threads together.

  static PassLimits WarmUp(const Options& options) {
    PassLimits limits;
    limits.seconds = std::clamp(options.seconds * 0.2, 0.05, 1.0);
    if (options.calls_max > 0) limits.calls_max = std::max<uint64_t>(1, options.calls_max / 10);
    return limits;
  }
  static PassLimits Measurement(const Options& options) {
    PassLimits limits;
    limits.seconds = options.seconds;
    if (options.calls_max > 0) limits.calls_max = options.calls_max;
    return limits;
  }

  // The part of `calls_max` that falls to one of `count`; the first ones take the remainder.
  uint64_t CallsOf(uint32_t index, uint32_t count) const {
    return calls_max / count + (index < calls_max % count ? 1 : 0);
  }
};

struct PassResult {
  Histogram latency_ns;
  double seconds = 0;  // From the first start to the last end.
  uint64_t calls() const { return latency_ns.Count(); }
};

inline absl::Status CheckBytesMoved(uint64_t moved, uint64_t expected) {
  if (moved == expected) [[likely]]
    return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the server answered for ", moved, " bytes instead of ", expected));
}

}  // namespace verbena::bench
