// SPDX-License-Identifier: Apache-2.0
//
// `rpc_bench local`: a measurement between two ceilings, all on the same two cores: this process on
// the first, a server of its own (this program again) on the second.
//
// Threads: the main one, which stays pinned.

#pragma once

#include "absl/status/statusor.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/tools/rpc_bench/result.h"

namespace verbena::bench {

// Fills the device, the wire and the cores of `conditions`. Errors: FAILED_PRECONDITION with fewer
// than two cores; those of MeasureCeiling and Measure.
absl::StatusOr<Result> MeasureLocal(Options options, Conditions* conditions);

}  // namespace verbena::bench
