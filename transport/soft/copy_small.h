// SPDX-License-Identifier: Apache-2.0
//
// Copying payload that fits a completion entry. Any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace verbena::soft {

// Copies a message part that fits a completion entry: never over-reads, never over-writes, and
// avoids the call that memcpy with a variable length is. Parts do not overlap.
inline void CopySmall(std::byte* to, const std::byte* from, uint32_t bytes) {
  using Block [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = char;
  using U64 [[gnu::aligned(1), gnu::may_alias]] = uint64_t;
  using U32 [[gnu::aligned(1), gnu::may_alias]] = uint32_t;
  const auto copy = [&]<typename T>(T*, uint32_t at) {
    *reinterpret_cast<T*>(to + at) = *reinterpret_cast<const T*>(from + at);
  };
  if (bytes >= 16) {
    uint32_t at = 0;
    for (; at + 16 <= bytes; at += 16) copy(static_cast<Block*>(nullptr), at);
    if (at != bytes) copy(static_cast<Block*>(nullptr), bytes - 16);
  } else if (bytes >= 8) {
    copy(static_cast<U64*>(nullptr), 0);
    copy(static_cast<U64*>(nullptr), bytes - 8);
  } else if (bytes >= 4) {
    copy(static_cast<U32*>(nullptr), 0);
    copy(static_cast<U32*>(nullptr), bytes - 4);
  } else {
    for (uint32_t at = 0; at < bytes; ++at) to[at] = from[at];
  }
}

}  // namespace verbena::soft
