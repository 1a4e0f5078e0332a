// SPDX-License-Identifier: Apache-2.0
//
// TimerWheel: many timers, most of which are cancelled before they fire (a deadline per call).
// Scheduling and cancelling take constant time and never allocate: a timer is a node inside its
// owner's object.
//
// Threads: one; a wheel and its timers belong to one poller. Lifetime: a timer is cancelled, or has
// fired, before it is destroyed; the wheel may go first only when nothing is scheduled. Both are
// checked.
//
// Time is passed in, in nanoseconds of one Clock, and is cut into ticks. A timer never fires before
// its deadline; it fires in the first Advance() at or after the end of the tick that the deadline
// falls into, so at most one tick late plus the caller's own delay.
//
// The structure is the hierarchical wheel of Varghese and Lauck (SOSP 1987): level 0 has a bucket
// per tick for the next 256 ticks, level 1 one per 256 ticks, and so on. A timer moves down at most
// once per level. Bitmaps of the buckets in use let Advance() jump over idle time, so a long
// sleep or a leap of virtual time costs nothing.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "glog/logging.h"

namespace verbena {

namespace timer_internal {

// A doubly linked ring: a bucket's head, and the base of each Timer in it. Unlinked = null.
struct Link {
  Link* prev = nullptr;
  Link* next = nullptr;
};

}  // namespace timer_internal

// A node to derive from, or to embed. 24 bytes. Neither copyable nor movable: the wheel points to
// it.
class Timer : private timer_internal::Link {
 public:
  Timer() = default;
  ~Timer() { CHECK(!IsScheduled()) << "a timer is destroyed while it is scheduled; Cancel() it"; }

  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  bool IsScheduled() const { return next != nullptr; }

 private:
  friend class TimerWheel;

  uint64_t deadline_tick_ = 0;
};

class TimerWheel {
 public:
  static constexpr int64_t kDefaultTickNs = 1'000'000;
  // What NextDeadlineHintNs() returns when nothing is scheduled.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // REQUIRES: now_ns >= 0 and tick_ns > 0. The wheel is about 16 KiB.
  explicit TimerWheel(int64_t now_ns, int64_t tick_ns = kDefaultTickNs);
  ~TimerWheel();

  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // The timer fires once `deadline_ns` has passed; a deadline in the past fires in the next
  // Advance(). A timer that is scheduled already moves to the new deadline. Any int64_t is fine.
  void Schedule(Timer* timer, int64_t deadline_ns);

  // Afterwards the timer does not fire. Does nothing to a timer that is not scheduled.
  void Cancel(Timer* timer);

  // Calls fire(Timer*) for each timer that is due at now_ns, in order of ticks and in any order
  // within one, and returns how many fired. A now_ns lower than before counts as no time passed.
  // The timer is unscheduled when fire() sees it. fire() may schedule or destroy it, and may
  // schedule and cancel others. What fire() schedules for a time that has passed fires in this
  // Advance() or in the next one, so fire() can't keep Advance() from returning.
  // REQUIRES: not called from fire().
  template <typename Fire>
  std::size_t Advance(int64_t now_ns, Fire&& fire) {
    if (now_ns < next_tick_ns_ && IsEmpty(due_)) return 0;
    DCHECK(!advancing_) << "Advance() is called from a timer";
    advancing_ = true;
    std::size_t fired = FireAll(&due_, fire);
    while (MoveToNextEvent(now_ns)) fired += FireAll(&BucketOfCurrentTick(), fire);
    advancing_ = false;
    return fired;
  }

  // Until when a poller may sleep: no timer fires in an Advance() before this time. It may be
  // earlier than the next deadline (at most a few times per timer, as it moves down the levels),
  // never later than the moment at which the next timer is due to fire. In the past when a timer
  // is due already.
  int64_t NextDeadlineHintNs() const;

  std::size_t scheduled_count() const { return scheduled_count_; }
  int64_t tick_ns() const { return tick_ns_; }

 private:
  using Link = timer_internal::Link;

  static constexpr int kLevelBits = 8;
  static constexpr std::size_t kBucketsPerLevel = std::size_t{1} << kLevelBits;
  // 2^32 ticks: 49 days of milliseconds. What is further away waits in the last bucket and is
  // sorted in again from there.
  static constexpr int kLevels = 4;
  static constexpr uint64_t kNoTick = UINT64_MAX;

  static bool IsEmpty(const Link& head) { return head.next == &head; }

  // Calls fire() for the timers of a ring. They move to a ring of their own first, so that what
  // fire() adds to the same ring waits for its own turn.
  template <typename Fire>
  std::size_t FireAll(Link* head, Fire& fire) {
    Link firing;
    TakeRing(head, &firing);
    std::size_t fired = 0;
    for (; !IsEmpty(firing); ++fired) {
      Timer* timer = static_cast<Timer*>(firing.next);
      Unlink(timer);
      fire(timer);
    }
    return fired;
  }

  // Moves the current tick on to the next one at which timers fire or move down a level, and moves
  // them down. False when there is none up to now_ns; the current tick is now_ns's then.
  bool MoveToNextEvent(int64_t now_ns);
  uint64_t NextEventTick() const;
  void SetCurrentTick(uint64_t tick);
  void MoveDown(std::size_t bucket);
  // Links the timer into the bucket for its deadline_tick_, as seen from the current tick.
  void Place(Timer* timer);
  void Unlink(Timer* timer);
  // Moves all of a ring's timers to `to`, in order, and leaves the ring empty.
  void TakeRing(Link* from, Link* to);
  // Clears the bucket's bit if `head` is the head of a bucket (and not of a ring outside).
  void MarkEmpty(const Link* head);
  Link& BucketOfCurrentTick() { return buckets_[current_tick_ % kBucketsPerLevel]; }

  const int64_t tick_ns_;
  uint64_t current_tick_;  // Every timer of this tick and before has fired.
  int64_t next_tick_ns_;   // Start of the tick after it: before this Advance() has nothing to do.
  std::size_t scheduled_count_ = 0;
  bool advancing_ = false;

  Link due_;  // Scheduled for a time that had passed.
  std::array<Link, kLevels * kBucketsPerLevel> buckets_;
  // Bit b of level l: buckets_[l * 256 + b] is not empty.
  std::array<std::array<uint64_t, kBucketsPerLevel / 64>, kLevels> in_use_ = {};
};

}  // namespace verbena
