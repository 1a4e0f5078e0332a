// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace verbena {
namespace {

using timer_internal::Link;

void InitHead(Link* head) { head->prev = head->next = head; }

void Append(Link* head, Link* node) {
  node->prev = head->prev;
  node->next = head;
  head->prev->next = node;
  head->prev = node;
}

// How far behind `from` the next set bit is, going round: 1 ... size, or 0 when no bit is set.
template <std::size_t kWords>
uint64_t DistanceToNextBit(const std::array<uint64_t, kWords>& bits, uint64_t from) {
  constexpr uint64_t kBits = kWords * 64;
  uint64_t start = (from + 1) % kBits;
  // The word that `start` is in comes twice: first its upper part, and last, when that and all the
  // others were found empty, its lower part.
  for (std::size_t i = 0; i <= kWords; ++i) {
    std::size_t word_index = (start / 64 + i) % kWords;
    uint64_t word = bits[word_index];
    if (i == 0) word &= ~uint64_t{0} << (start % 64);
    if (word == 0) continue;
    uint64_t found = word_index * 64 + static_cast<uint64_t>(std::countr_zero(word));
    return (found + kBits - start) % kBits + 1;
  }
  return 0;
}

// The end of a deadline's tick: no tick before it may fire the timer.
uint64_t TickAtOrAfter(int64_t ns, int64_t tick_ns) {
  if (ns <= 0) return 0;
  return static_cast<uint64_t>(ns / tick_ns) + (ns % tick_ns != 0 ? 1 : 0);
}

uint64_t TickAtOrBefore(int64_t ns, int64_t tick_ns) {
  return ns <= 0 ? 0 : static_cast<uint64_t>(ns / tick_ns);
}

int64_t TickStartNs(uint64_t tick, int64_t tick_ns) {
  int64_t ns;
  if (__builtin_mul_overflow(tick, tick_ns, &ns)) return TimerWheel::kNever;
  return ns;
}

}  // namespace

TimerWheel::TimerWheel(int64_t now_ns, int64_t tick_ns) : tick_ns_(tick_ns) {
  CHECK_GE(now_ns, 0);
  CHECK_GT(tick_ns, 0);
  InitHead(&due_);
  for (Link& head : buckets_) InitHead(&head);
  SetCurrentTick(TickAtOrBefore(now_ns, tick_ns));
}

TimerWheel::~TimerWheel() {
  CHECK_EQ(scheduled_count_, 0u) << "timers are scheduled on a wheel that is destroyed";
}

void TimerWheel::Schedule(Timer* timer, int64_t deadline_ns) {
  if (timer->IsScheduled()) Unlink(timer);
  timer->deadline_tick_ = TickAtOrAfter(deadline_ns, tick_ns_);
  ++scheduled_count_;
  if (timer->deadline_tick_ <= current_tick_) {
    Append(&due_, timer);
  } else {
    Place(timer);
  }
}

void TimerWheel::Cancel(Timer* timer) {
  if (timer->IsScheduled()) Unlink(timer);
}

int64_t TimerWheel::NextDeadlineHintNs() const {
  if (!IsEmpty(due_)) return TickStartNs(current_tick_, tick_ns_);
  uint64_t tick = NextEventTick();
  return tick == kNoTick ? kNever : TickStartNs(tick, tick_ns_);
}

bool TimerWheel::MoveToNextEvent(int64_t now_ns) {
  const uint64_t now_tick = std::max(current_tick_, TickAtOrBefore(now_ns, tick_ns_));
  const uint64_t event_tick = NextEventTick();
  if (event_tick > now_tick) {
    SetCurrentTick(now_tick);
    return false;
  }
  SetCurrentTick(event_tick);
  // Where a bucket of a level begins, its timers move down, each at once to the level that its
  // distance asks for. Those that are due at this very tick come to be in the bucket that fires
  // now.
  for (int level = 1; level < kLevels; ++level) {
    const int shift = level * kLevelBits;
    if (event_tick % (uint64_t{1} << shift) != 0) continue;
    MoveDown(static_cast<std::size_t>(level) * kBucketsPerLevel +
             (event_tick >> shift) % kBucketsPerLevel);
  }
  return true;
}

uint64_t TimerWheel::NextEventTick() const {
  uint64_t next = kNoTick;
  for (int level = 0; level < kLevels; ++level) {
    const int shift = level * kLevelBits;
    const uint64_t current = current_tick_ >> shift;  // In this level's buckets.
    const uint64_t distance =
        DistanceToNextBit(in_use_[static_cast<std::size_t>(level)], current % kBucketsPerLevel);
    if (distance != 0) next = std::min(next, (current + distance) << shift);
  }
  return next;
}

void TimerWheel::SetCurrentTick(uint64_t tick) {
  current_tick_ = tick;
  next_tick_ns_ = TickStartNs(tick + 1, tick_ns_);
}

void TimerWheel::MoveDown(std::size_t bucket) {
  Link ring;
  TakeRing(&buckets_[bucket], &ring);
  while (!IsEmpty(ring)) {
    Timer* timer = static_cast<Timer*>(ring.next);
    ring.next = timer->next;
    timer->next->prev = &ring;
    Place(timer);
  }
}

void TimerWheel::Place(Timer* timer) {
  // The distance picks the level. It is 0 for a timer that moves down at its own deadline. Beyond
  // the last level it is cut: the timer is sorted in again from there.
  constexpr uint64_t kDistanceMax = (uint64_t{1} << (kLevels * kLevelBits)) - 1;
  const uint64_t distance = std::min(timer->deadline_tick_ - current_tick_, kDistanceMax);
  const std::size_t level =
      distance == 0 ? 0 : static_cast<std::size_t>(std::bit_width(distance) - 1) / kLevelBits;
  const std::size_t bucket =
      ((current_tick_ + distance) >> (level * kLevelBits)) % kBucketsPerLevel;
  Append(&buckets_[level * kBucketsPerLevel + bucket], timer);
  in_use_[level][bucket / 64] |= uint64_t{1} << (bucket % 64);
}

void TimerWheel::Unlink(Timer* timer) {
  timer->prev->next = timer->next;
  timer->next->prev = timer->prev;
  // The last timer of a ring has the head on both sides.
  if (timer->prev == timer->next) MarkEmpty(timer->prev);
  timer->prev = timer->next = nullptr;
  --scheduled_count_;
}

void TimerWheel::TakeRing(Link* from, Link* to) {
  InitHead(to);
  if (IsEmpty(*from)) return;
  *to = *from;
  to->prev->next = to;
  to->next->prev = to;
  InitHead(from);
  MarkEmpty(from);
}

void TimerWheel::MarkEmpty(const Link* head) {
  // std::less and not <: other rings' heads are not part of the array.
  std::less<const Link*> before;
  if (before(head, buckets_.data()) || !before(head, buckets_.data() + buckets_.size())) return;
  const std::size_t index = static_cast<std::size_t>(head - buckets_.data());
  const std::size_t bucket = index % kBucketsPerLevel;
  in_use_[index / kBucketsPerLevel][bucket / 64] &= ~(uint64_t{1} << (bucket % 64));
}

}  // namespace verbena
