// SPDX-License-Identifier: Apache-2.0
//
// What a question and its answer contain, both by the id of the call alone: so each side knows what
// the other must have sent, and nothing of one call passes for that of another.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace verbena::faults {

enum class Role : uint64_t { kQuestion = 1, kAnswer = 2 };

// SplitMix64's finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
inline uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// A quarter each: nothing to what goes inline, up to one packet of a small MTU, and up to all that
// fits in a slot of the default size beside the headers and the fields' tags.
inline size_t ContentBytes(uint64_t id, Role role) {
  constexpr size_t kBytesMax[] = {0, 64, 1000, 4000};
  const uint64_t random = Mix(id * 4 + static_cast<uint64_t>(role));
  return (random >> 8) % (kBytesMax[random % 4] + 1);
}

inline std::string Content(uint64_t id, Role role) {
  std::string content(ContentBytes(id, role), '\0');
  uint64_t state = Mix(~id * 4 + static_cast<uint64_t>(role));
  for (size_t at = 0; at < content.size(); at += sizeof(state)) {
    state += 0x9e3779b97f4a7c15u;
    const uint64_t word = Mix(state);
    std::memcpy(&content[at], &word, std::min(sizeof(word), content.size() - at));
  }
  return content;
}

}  // namespace verbena::faults
