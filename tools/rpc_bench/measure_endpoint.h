// SPDX-License-Identifier: Apache-2.0
//
// Two transport endpoints, measured without calls and Protobuf: what the RPC layer is added to.
// See measure.h.

#pragma once

#include "absl/status/statusor.h"
#include "verbena/tools/rpc_bench/measure.h"
#include "verbena/transport/device.h"

namespace verbena::bench {

absl::StatusOr<Measurement> MeasureEndpoint(const Options& options, Device& device);

}  // namespace verbena::bench
