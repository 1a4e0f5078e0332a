// SPDX-License-Identifier: Apache-2.0
//
// What a device really does, found out by trying: its own word is not enough. Devices list as verbs
// that have no reliable connections (EFA); inline limits are told by nobody.
//
// Threads: any; makes and destroys a few queues.

#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "verbena/transport/rdma/handles.h"

namespace verbena::rdma {

struct Probed {
  uint32_t inline_bytes_max = 0;
  bool memory_windows = false;  // Type 2.
  bool shared_receive_queue = false;
  bool empty_receives = false;  // Receives without any scatter/gather entry.
};

// `sge`: entries per work request with which the inline limit holds.
// Errors: UNAVAILABLE, the device makes no reliable-connected queue pairs.
absl::StatusOr<Probed> ProbeDevice(ibv_context* context, const ibv_device_attr& attributes,
                                   uint32_t sge, uint8_t port);

}  // namespace verbena::rdma
