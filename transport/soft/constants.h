// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the software RNIC: what each counts, why this value, what breaks when it is wrong.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace verbena::soft {

// A coherence granule. x86 cores prefetch lines in pairs, so two lines that different processes
// write are kept this far apart; with 64 the neighbour's writes steal the line.
inline constexpr size_t kLinePairBytes = 128;

inline constexpr size_t kPageBytes = 4096;

// Payload bytes that travel inside a completion entry: a pair of lines less the 16-byte header.
// Part of the shared layout: changing it needs a new kWireVersion.
inline constexpr uint32_t kEntryPayloadBytes = kLinePairBytes - 16;

// Staging bytes per receive slot, for receives that the peer cannot reach: memory that the user
// allocated, and shared receive queues. Sparse: a slot costs memory only once it is used, and then
// only the pages that the messages touched. Longer messages get a length error.
inline constexpr uint32_t kStagingBytes = 64 * 1024;

// Scatter/gather entries that fit a 64-byte receive entry beside its 8-byte header.
inline constexpr uint32_t kReceiveSgeMax = 3;
// Only bounds the copy of a request that has to wait (PendingSend). ConnectX offers 30.
inline constexpr uint32_t kSendSgeMax = 8;
// kSendInline is a copy that the device keeps when the request has to wait. The default of mlx5 is
// of this order.
inline constexpr uint32_t kInlineBytesMax = 256;

// 16384 receives make a segment of 1 GiB of (sparse) address space.
inline constexpr uint32_t kQueueDepthMax = 16384;
// Completion entries: enough for 4096 queue pairs with 128 + 128.
inline constexpr uint32_t kCompletionQueueDepthMax = 1u << 20;
// Each costs four descriptors and about ten mappings; vm.max_map_count is 65530 by default.
inline constexpr uint32_t kQueuePairsMax = 4096;
// InfiniBand's limit: 2^31 bytes (IB specification vol. 1, section 9.7).
inline constexpr uint64_t kMessageBytesMax = uint64_t{1} << 31;

// Keys (regions and windows) of one protection domain. A power of two: an index is masked and the
// whole key compared. The two tables are 256 KiB and 128 KiB of memory that is touched on use.
inline constexpr uint32_t kKeysMax = 4096;

// Receives that a queue pair with a shared receive queue shows its peer at a time. More lets one
// peer send longer bursts; fewer overcommits the shared queue less.
inline constexpr uint32_t kSharedWindow = 16;

// Bytes of regions that one peer may make us map; a hostile one could else use up our address
// space of 128 TiB.
inline constexpr uint64_t kPeerMappedBytesMax = uint64_t{1} << 40;
// Page tables of a prefaulted region are filled at once up to this size. Larger ones fault on
// first use: filling them would hold up the control thread for tens of milliseconds.
inline constexpr uint64_t kPopulateBytesMax = uint64_t{64} << 20;

// Sends to a region whose descriptor is still under way wait so long, then fail. The control
// thread needs microseconds, so this fires only when the peer is stopped or hostile.
inline constexpr std::chrono::milliseconds kRegionWait{1000};
// A flush, or the end of a LOCAL_INVALIDATE, waits so long for a copy that the peer has begun.
// A stopped peer that continues later can write into the memory after that.
inline constexpr std::chrono::milliseconds kExecutingWait{1000};
// The same for the destructor of a queue pair, which blocks.
inline constexpr std::chrono::milliseconds kDestroyWait{100};

// A socket that connected has so long to say who it is, and an accepted client to send its
// segment. Garbage is gone after this time at the latest.
inline constexpr std::chrono::milliseconds kHandshakeTimeout{2000};
// Sockets and requests of one listener that wait for their peer or for the application. Beyond it
// clients wait in the kernel's queue, whose length is net.core.somaxconn (4096 by default).
inline constexpr uint32_t kPendingRequestsMax = 1024;
inline constexpr int kListenBacklog = 4096;

// How often the control thread repeats what the kernel refused for now (a full backlog or socket
// buffer), and how long after Arm it wakes a queue that has stalled sends.
inline constexpr std::chrono::milliseconds kTick{1};

// Asynchronous events that wait for the application; further ones are logged and dropped.
inline constexpr size_t kAsyncEventsMax = 1024;

}  // namespace verbena::soft
