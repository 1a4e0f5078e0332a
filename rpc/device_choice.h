// SPDX-License-Identifier: Apache-2.0
//
// Which device serves an address, from the explicit list that the options carry.

#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "verbena/transport/device.h"

namespace verbena {

// The first device of `devices` that serves the address's scheme. With an empty list: for "rdma:"
// addresses the RDMA device that has the address, to listen, or is on the way there, to connect; for
// others a software device; all such users of the process share it, and it ends with the last of
// them.
// Errors: UNAVAILABLE naming the scheme, the devices asked, and what to do; or why this host has no
// RDMA device.
absl::StatusOr<std::shared_ptr<Device>> ChooseDevice(std::span<Device* const> devices,
                                                     const Address& address, AddressUse use);

}  // namespace verbena
