// SPDX-License-Identifier: Apache-2.0
//
// The only door to the software RNIC: reliable connections between processes without an RDMA NIC.
// Wires: `shm` (processes of one host).

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "verbena/transport/device.h"

namespace verbena {

struct SoftDeviceOptions {
  // Puts a full fence behind every send instead of the kernel's membarrier(2) in front of every
  // sleep. It is the fallback where that system call is missing; set it to test the fallback.
  bool fence_every_send = false;
};

// Errors: UNAVAILABLE with what this host lacks (sealed memfd, eventfd, Unix sockets).
absl::StatusOr<std::unique_ptr<Device>> CreateSoftDevice(const SoftDeviceOptions& options = {});

}  // namespace verbena
