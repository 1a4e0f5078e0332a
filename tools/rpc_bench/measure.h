// SPDX-License-Identifier: Apache-2.0
//
// Measures against a server that runs: warm-up, then a steady state between two looks at what both
// processes have used. Threads: the caller's, which may be pinned; threads of the channels inherit
// that.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/tools/rpc_bench/result.h"
#include "verbena/tools/rpc_bench/usage.h"

namespace verbena::bench {

struct Measurement {
  Result result;
  std::string device;
  std::string wire;
  std::string server_cores;
};

// Opens a device for options.target, and closes it. Errors: UNAVAILABLE (no server there), and what
// the first failing call said. Bounded by the time asked for plus 10 s; past that, the process
// ends (run_bound.h).
absl::StatusOr<Measurement> Measure(const Options& options);

// Result's fields that follow from a pass and the usage around it.
struct PassResult;
void FillResult(const Options& options, const PassResult& pass, const UsageNow& client_before,
                const UsageNow& client_after, const UsageNow& server_before,
                const UsageNow& server_after, Result* result);

}  // namespace verbena::bench
