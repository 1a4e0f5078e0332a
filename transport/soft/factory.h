// SPDX-License-Identifier: Apache-2.0
//
// The only door to the software RNIC: reliable connections between processes without an RDMA NIC.
// Wires: `shm` (processes of one host that run as the same user, or root).
//
// fork(2) after CreateSoftDevice is not supported: the child shares the memory and would keep the
// peers from noticing the parent's death. exec(2) is fine, as every descriptor closes on it.
//
// Trust: a peer can write, at any time and into any part of it, to memory of its queue pair's
// protection domain that has local write access and came from AllocateMemory. Give each peer that
// is not trusted a domain of its own. Nothing a peer does crashes this process or reaches another
// domain. One thing can stop a thread: a peer that makes its wake-up descriptor blocking and full
// on purpose.

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
