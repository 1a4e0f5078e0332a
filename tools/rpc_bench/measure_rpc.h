// SPDX-License-Identifier: Apache-2.0
//
// The calls of bench.proto, measured through generated stubs. See measure.h.

#pragma once

#include "absl/status/statusor.h"
#include "verbena/tools/rpc_bench/measure.h"
#include "verbena/transport/device.h"

namespace verbena::bench {

absl::StatusOr<Measurement> MeasureRpc(const Options& options, Device& device);

}  // namespace verbena::bench
