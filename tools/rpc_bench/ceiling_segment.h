// SPDX-License-Identifier: Apache-2.0
//
// The memory that the two processes of a ceiling share, and how they wait for each other there.
// One process measures, the other (its partner) answers; each runs one thread.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbena::bench {

inline constexpr size_t kMessageBytes = 64;

// Ends a task, in place of a number.
inline constexpr uint32_t kLast = 0xffffffff;

// A message with the number that says it is there. 68 bytes lie on two cache lines; 128 keep the
// next message, and the prefetcher that fetches lines in pairs, away from them.
struct alignas(128) MessageSlot {
  std::atomic<uint32_t> sequence;
  std::array<std::byte, kMessageBytes> payload;
};
static_assert(sizeof(MessageSlot) == 128);

using Message = std::array<std::byte, kMessageBytes>;

// Enough for both sides to work on different slots all the time; 64 KiB, so it stays in the L2
// cache.
inline constexpr uint32_t kRingSlots = 1024;
// How often the writer tells what it has written: the line that says so moves seldom, and the
// messages lie one behind the other, for the prefetcher. Measured: 75 million messages a second
// with 1, 45 with a number in every message, 75 to 115 with 16.
inline constexpr uint32_t kRingPublishEvery = 16;
// How often the reader tells what it has read. The writer does not wait for it while the ring is
// less than three quarters full.
inline constexpr uint32_t kRingReportEvery = 256;
static_assert(kRingSlots % kRingPublishEvery == 0 && kRingSlots % kRingReportEvery == 0);

struct CeilingSegment {
  enum class Task : uint32_t { kNone, kPingPong, kRing };

  // The measuring process writes what is to be done, then increases `asked`; the partner answers
  // when it is ready to start. A message with kLast ends the task; only the measuring process looks
  // at the clock.
  Task task;
  alignas(128) std::atomic<uint32_t> asked;
  alignas(128) std::atomic<uint32_t> answered;

  MessageSlot ping;
  MessageSlot pong;
  // The ring starts empty and is used once. Its length is a multiple of kRingSlots.
  alignas(128) std::atomic<uint32_t> ring_written;
  alignas(128) std::atomic<uint32_t> ring_read;
  alignas(128) std::array<Message, kRingSlots> ring;
};

// Spins until `ready()`. False when that took several seconds, so when the other process is gone.
// No pause instruction: this is the lowest latency there is, and a core belongs to each side.
template <class Ready>
bool SpinUntil(Ready ready) {
  constexpr uint64_t kSpinsMax = uint64_t{1} << 33;  // 3 s and more, at one load per cycle.
  for (uint64_t spins = 0; spins < kSpinsMax; ++spins) {
    if (ready()) return true;
  }
  return false;
}

// Copies a message as someone who will use it: the compiler may not leave it out.
inline void CopyMessage(std::byte* to, const std::byte* from) {
  __builtin_memcpy(to, from, kMessageBytes);
  asm volatile("" : : "r"(to) : "memory");
}

}  // namespace verbena::bench
