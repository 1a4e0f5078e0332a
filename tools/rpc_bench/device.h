// SPDX-License-Identifier: Apache-2.0
//
// The device for an address. Threads: any.

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/transport/address.h"
#include "verbena/transport/device.h"
#include "verbena/transport/poll_options.h"

namespace verbena::bench {

// As for a channel or a server. Errors: UNAVAILABLE when no device serves the address, or it can't
// run here.
absl::StatusOr<std::shared_ptr<Device>> OpenDevice(const std::string& address, AddressUse use);

PollOptions::Mode ToPollMode(Poll poll);

}  // namespace verbena::bench
