// SPDX-License-Identifier: Apache-2.0
//
// MpscQueue<T>: a bounded first-in-first-out queue from many threads to one. This is how other
// threads hand work to a poller.
//
// Threads: TryPush() from any thread; TryPop() and Empty() from one thread at a time (the
// consumer). No lock, no system call, and no allocation after the constructor. Lifetime: destroy it
// when no thread uses it any more; what is still queued is destroyed with it.
//
// Order: values of one producer come out in the order in which it pushed them; values of different
// producers in the order in which the producers claimed their slots.
//
// The algorithm is Dmitry Vyukov's bounded queue
// (https://www.1024cores.net/home/lock-free-algorithms/queues/bounded-mpmc-queue) with the single
// consumer's half simplified. Each slot carries a sequence number that says whose turn it is:
// `position` = free for the push at that position, `position + 1` = filled by it.
//
// A producer that is preempted between claiming a slot and filling it hides the values behind it
// until it runs again: TryPop() then returns false though later pushes have succeeded. No value is
// lost or reordered.

#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "glog/logging.h"
#include "verbena/base/cache_line.h"

namespace verbena {

template <typename T>
class MpscQueue {
  static_assert(std::is_default_constructible_v<T>, "slots hold a T while they are free");
  static_assert(std::is_nothrow_move_assignable_v<T>, "a throw would lose a claimed slot");

 public:
  // REQUIRES: `capacity` (how many values fit) is a power of two and at least 2: with one slot,
  // "filled" and "free for the next round" would be the same sequence number.
  explicit MpscQueue(std::size_t capacity)
      : mask_(capacity - 1), slots_(std::make_unique<Slot[]>(capacity)) {
    CHECK(capacity >= 2 && std::has_single_bit(capacity)) << "capacity " << capacity;
    for (std::size_t i = 0; i < capacity; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  MpscQueue(const MpscQueue&) = delete;
  MpscQueue& operator=(const MpscQueue&) = delete;

  std::size_t capacity() const { return mask_ + 1; }

  // False when the queue is full: `value` is then untouched, and the caller has to keep, refuse or
  // retry it. Everything done before a push that succeeded is visible to the consumer after the
  // pop.
  [[nodiscard]] bool TryPush(T&& value) {
    std::size_t position = push_position_.load(std::memory_order_relaxed);
    while (true) {
      Slot& slot = slots_[position & mask_];
      std::size_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == position) {
        if (push_position_.compare_exchange_weak(position, position + 1,
                                                 std::memory_order_relaxed)) {
          slot.value = std::move(value);
          slot.turn.store(position + 1, std::memory_order_release);
          return true;
        }
        // Another producer took it, and `position` is now the current one.
      } else if (static_cast<std::ptrdiff_t>(turn - position) < 0) {
        return false;  // The slot still holds the value of the round before.
      } else {
        position = push_position_.load(std::memory_order_relaxed);
      }
    }
  }

  [[nodiscard]] bool TryPush(const T& value) {
    T copy = value;
    return TryPush(std::move(copy));
  }

  // Consumer only. False when there is nothing to take; `*value` is then untouched.
  [[nodiscard]] bool TryPop(T* value) {
    Slot& slot = slots_[pop_position_ & mask_];
    if (slot.turn.load(std::memory_order_acquire) != pop_position_ + 1) return false;
    *value = std::move(slot.value);
    slot.turn.store(pop_position_ + capacity(), std::memory_order_release);
    ++pop_position_;
    return true;
  }

  // Consumer only: whether TryPop() would return false. A consumer that goes to sleep sets its
  // "asleep" flag, then issues a sequentially consistent fence, then looks here once more; a
  // producer pushes, issues the fence and reads the flag. Without both fences each may miss the
  // other.
  bool Empty() const {
    const Slot& slot = slots_[pop_position_ & mask_];
    return slot.turn.load(std::memory_order_acquire) != pop_position_ + 1;
  }

 private:
  // A line each, so that producers that fill neighbouring slots don't share one.
  struct alignas(kCacheLineBytes) Slot {
    std::atomic<std::size_t> turn;
    T value{};
  };

  // Read by all, written by none.
  const std::size_t mask_;
  const std::unique_ptr<Slot[]> slots_;

  alignas(kCacheLineBytes) std::atomic<std::size_t> push_position_{0};  // Producers.
  alignas(kCacheLineBytes) std::size_t pop_position_ = 0;               // The consumer.
};

}  // namespace verbena
