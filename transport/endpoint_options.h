// SPDX-License-Identifier: Apache-2.0
//
// The sizes of one connection. A value; checked when the endpoint is made.

#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace verbena {

// Bound of EndpointOptions::post_batch_max: a batch lives in an array inside the endpoint.
inline constexpr uint32_t kPostBatchBound = 32;

struct EndpointOptions {
  // Receives posted ahead, and so the credits that the peer starts with. 16 to 4096, a power of
  // two. 128 covers a 25 us round trip at 5 million messages a second.
  uint32_t ring_depth = 128;
  // Bytes of one send or receive slot, header included: the longest message of the control path.
  // 512 to 65536, a multiple of 64. Both sides must agree on nothing: each is told the other's.
  uint32_t slot_bytes = 4096;
  // Sends posted with one doorbell at the most.
  uint32_t post_batch_max = 16;

  // Memory of one connection:
  //   receive slots   ring_depth x (slot_bytes + kSlotColourBytes)
  //   send slots      send_slots() x (slot_bytes + kSlotColourBytes)
  // With the defaults 128 x 4160 + 16 x 4160 = 599,040 bytes, of which only slots that were used
  // are touched.
  //
  // Send slots that are in use at once: messages longer than the device's inline limit keep theirs
  // until a completion frees it.
  uint32_t send_slots() const { return ring_depth < 128 ? 8 : ring_depth / 8; }

  // Errors: INVALID_ARGUMENT naming the field, its value and its bounds.
  absl::Status Validate() const;
};

// Slots lie slot_bytes + 64 apart, because starts that are 4 KiB apart would share one set of the
// L1 cache and evict each other.
inline constexpr uint32_t kSlotColourBytes = 64;

}  // namespace verbena
