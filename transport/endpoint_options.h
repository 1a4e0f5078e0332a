// SPDX-License-Identifier: Apache-2.0
//
// The sizes of one connection. A value; checked when the endpoint is made.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "verbena/transport/memory_budget.h"

namespace verbena {

// Bound of EndpointOptions::post_batch_max: a batch lives in an array inside the endpoint.
inline constexpr uint32_t kPostBatchBound = 32;

// Least of EndpointOptions::slot_frame_bytes_max: the header of a request, and a little.
inline constexpr uint32_t kSlotFrameBytesMin = 64;

// Bounds of EndpointOptions::detection_time. Timers have a resolution of a millisecond, and six
// looks fit in it; ten minutes is when TCP's keepalive begins to help.
inline constexpr std::chrono::milliseconds kDetectionTimeMin{50};
inline constexpr std::chrono::milliseconds kDetectionTimeMax{600'000};

struct EndpointOptions {
  // Receives posted ahead, and so the credits that the peer starts with. 16 to 4096, a power of
  // two. 128 covers a 25 us round trip at 5 million messages a second.
  uint32_t ring_depth = 128;
  // Bytes of one send or receive slot, header included: the longest message of the control path.
  // 512 to 65536, a multiple of 64. Both sides must agree on nothing: each is told the other's.
  uint32_t slot_bytes = 4096;
  // Longest frame that goes into a slot, header included; a longer one goes by RDMA WRITE. 64 to
  // slot_bytes; 0: slot_bytes, or the peer's if that is less. docs/performance.md has the
  // crossover.
  uint32_t slot_frame_bytes_max = 0;
  // Sends posted with one doorbell at the most.
  uint32_t post_batch_max = 16;
  // When the peer's host or the network to it vanishes, whatever waits for it ends UNAVAILABLE
  // within this time; a side that waits for nothing notices within twice of it. A peer whose NIC
  // answers nothing for half of it is taken for gone. A busy or stopped process is not: its NIC
  // answers. 50 ms to 10 minutes; 0: never. Shorter costs more probes on silent connections (three
  // per detection time where somebody waits, one otherwise) and mistakes a hiccup of the network
  // for an end.
  std::chrono::milliseconds detection_time{1000};

  // Registered memory for messages that go by RDMA WRITE: what landed here and is not let go of
  // yet, what may land, and what is being sent of messages without Buffers. Bytes. A message that
  // does not fit gets RESOURCE_EXHAUSTED; one that would fit but for others waits for some seconds.
  uint64_t payload_bytes_max = uint64_t{4} << 30;
  // The same for all connections that share it, and BufferPools. Null: MemoryBudget::OfProcess().
  std::shared_ptr<MemoryBudget> process_budget = nullptr;

  // Memory of one connection that is idle, which Endpoint::MemoryBytes adds up:
  //   receive slots   ring_depth x (slot_bytes + kSlotColourBytes)     532,480 bytes
  //   send slots      send_slots() x (slot_bytes + kSlotColourBytes)    49,920
  //   what describes a receive slot    ring_depth x 40                   5,120
  //   references to what is sent from elsewhere    (send_slots() + 32) x 24   1,056
  //   the endpoint itself, with room for a batch of inline frames      some 15,000
  // With the defaults that is less than 600 KiB (614,400 bytes), of which only slots that were used
  // are touched. Blocks for messages that go by RDMA WRITE come and go with those (payload_path.h).
  //
  // Send slots that are in use at once: messages longer than the device's inline limit keep theirs
  // until a completion frees it.
  uint32_t send_slots() const { return ring_depth < 128 ? 8 : ring_depth / 32 * 3; }

  // Errors: INVALID_ARGUMENT naming the field, its value and its bounds.
  absl::Status Validate() const;
};

// For ConnectOptions::acknowledgement_timeout: the longest with which a NIC gives up within
// `detection_time` after seven retries, if it keeps its times; it may take four times as long, and
// then the endpoint is faster.
uint8_t AcknowledgementTimeout(std::chrono::milliseconds detection_time);

// Slots lie slot_bytes + 64 apart, because starts that are 4 KiB apart would share one set of the
// L1 cache and evict each other.
inline constexpr uint32_t kSlotColourBytes = 64;

}  // namespace verbena
