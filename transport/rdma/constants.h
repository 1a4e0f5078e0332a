// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the rdma-core device: what each counts, why this value, what breaks when wrong.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace verbena::rdma {

// Work requests handed to the provider with one call, and so with one doorbell. They are built on
// the stack, 128 bytes each. Longer chains are posted in pieces.
inline constexpr size_t kPostChunk = 32;

// Entries taken from the hardware at a time; as many as a poller asks for.
inline constexpr size_t kPollChunk = 32;

// Inline limits above this are not asked for: work queue entries grow with them.
inline constexpr uint32_t kInlineBytesMax = 512;
// Scatter/gather entries with which the inline limit is probed, since both share the entry.
inline constexpr uint32_t kProbeSge = 4;

// READs and atomics on their way at once, per direction. ConnectX takes 16.
inline constexpr uint8_t kReadsInFlightMax = 16;

// Connection requests that wait for us in the kernel; net.rdma_ucm.max_backlog is 1024 by default.
inline constexpr int kListenBacklog = 1024;

// Asynchronous events that wait for the application; further ones are logged and dropped.
inline constexpr size_t kAsyncEventsMax = 1024;

// Shared receive queues of one device that live at a time.
inline constexpr uint32_t kSharedReceiveQueuesMax = 1024;

// Memory of at least this size is put on huge pages where the system has them.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// An address that does not answer ARP or neighbour discovery. Within the connect timeout.
inline constexpr std::chrono::milliseconds kResolveTimeoutMax{2000};

}  // namespace verbena::rdma
