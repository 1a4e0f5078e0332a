// SPDX-License-Identifier: Apache-2.0
//
// Copying payload that fits a completion entry. Any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbena::soft {

// Copies a message part that fits a completion entry: never over-reads, never over-writes, and
// avoids the call that memcpy with a variable length is: the fixed lengths below become moves.
// The first 32 bytes go eight at a time: there the headers are, written a moment ago in words of
// eight, and a load that spans two stores on their way waits for both. The two do not overlap.
inline void CopySmall(std::byte* to, const std::byte* from, uint32_t bytes) {
  if (bytes >= 32) {
    for (uint32_t at = 0; at < 32; at += 8) std::memcpy(to + at, from + at, 8);
    uint32_t at = 32;
    for (; at + 16 <= bytes; at += 16) std::memcpy(to + at, from + at, 16);
    if (at != bytes) std::memcpy(to + bytes - 16, from + bytes - 16, 16);
  } else if (bytes >= 8) {
    uint32_t at = 0;
    for (; at + 8 <= bytes; at += 8) std::memcpy(to + at, from + at, 8);
    if (at != bytes) std::memcpy(to + bytes - 8, from + bytes - 8, 8);
  } else if (bytes >= 4) {
    std::memcpy(to, from, 4);
    std::memcpy(to + bytes - 4, from + bytes - 4, 4);
  } else {
    for (uint32_t at = 0; at < bytes; ++at) to[at] = from[at];
  }
}

}  // namespace verbena::soft
