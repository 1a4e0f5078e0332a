// SPDX-License-Identifier: Apache-2.0
//
// The wr_id that the hardware sees. Not the user's: completions in error tell nothing but wr_id,
// status, vendor error and queue pair number (ibv_poll_cq(3)), and queue pair numbers are used
// again, so ours says whose request it was, and which.
//
//   63..62 kind   61..42 owner   41..32 generation   31..0 sequence or slot
//
// The user's own is kept in a table of the queue.

#pragma once

#include <cstdint>

namespace verbena::rdma {

struct WorkId {
  enum class Kind : uint32_t { kSend = 0, kRecv = 1, kSharedRecv = 2 };

  static constexpr uint32_t kOwnersMax = 1u << 20;
  static constexpr uint32_t kGenerations = 1u << 10;

  Kind kind = Kind::kSend;
  uint32_t owner = 0;       // A place in the completion queue, or a shared receive queue's number.
  uint32_t generation = 0;  // Of that place.
  uint32_t sequence = 0;

  constexpr uint64_t Encode() const {
    return uint64_t{static_cast<uint32_t>(kind)} << 62 | uint64_t{owner} << 42 |
           uint64_t{generation} << 32 | sequence;
  }
  static constexpr WorkId Decode(uint64_t value) {
    return {static_cast<Kind>(value >> 62), static_cast<uint32_t>(value >> 42) & (kOwnersMax - 1),
            static_cast<uint32_t>(value >> 32) & (kGenerations - 1), static_cast<uint32_t>(value)};
  }
};

}  // namespace verbena::rdma
