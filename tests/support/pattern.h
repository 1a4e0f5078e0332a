// SPDX-License-Identifier: Apache-2.0
//
// Bytes that can be told from any others: a pattern that depends on a seed and on the place.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace verbena {

// SplitMix64 (Steele, Lea, Flood 2014) of seed and word number.
inline uint64_t PatternWord(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0x9e3779b97f4a7c15 + (index + 1) * 0xd1342543de82ef95;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

inline void FillPattern(std::span<std::byte> bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = PatternWord(seed, at / sizeof(uint64_t));
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), bytes.size() - at));
  }
}

// The first place where `bytes` differ; their size when they don't.
inline size_t PatternMismatch(std::span<const std::byte> bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = PatternWord(seed, at / sizeof(uint64_t));
    const size_t count = std::min(sizeof(word), bytes.size() - at);
    if (std::memcmp(bytes.data() + at, &word, count) == 0) continue;
    for (size_t i = 0; i < count; ++i) {
      if (bytes[at + i] != reinterpret_cast<const std::byte*>(&word)[i]) return at + i;
    }
  }
  return bytes.size();
}

}  // namespace verbena
