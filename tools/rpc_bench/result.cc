// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/result.h"

#include <algorithm>

namespace verbena::bench {

bool CeilingAround::IsSteady() const {
  return std::max(rtt_before_us, rtt_after_us) <= 1.25 * std::min(rtt_before_us, rtt_after_us);
}

bool Result::CoresWereOurs() const {
  // The first looks at the clocks and the last ones cost a few per cent of a short run.
  constexpr double kShareMin = 0.9;
  return core_share.client.value_or(1) >= kShareMin && core_share.server.value_or(1) >= kShareMin;
}

std::optional<double> RatioToCeiling(const Options& options, const Result& result) {
  if (!result.ceiling.has_value()) return std::nullopt;
  double numerator = 0, denominator = 0;
  switch (options.mode) {
    case Mode::kLatency:
      numerator = result.rtt.p50_us;
      denominator = result.ceiling->rtt_us();
      break;
    case Mode::kThroughput:
      numerator = result.calls_per_second;
      denominator = result.ceiling->ring_messages_per_second;
      break;
    case Mode::kUpload:
    case Mode::kDownload:
    case Mode::kBeside:
      numerator = result.bytes_per_second;
      denominator = result.ceiling->copy_bytes_per_second;
      break;
  }
  if (denominator <= 0) return std::nullopt;
  return numerator / denominator;
}

}  // namespace verbena::bench
