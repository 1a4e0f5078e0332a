// SPDX-License-Identifier: Apache-2.0
//
// A completion queue holds no receive completions: Poll takes them from the segments of the queue
// pairs attached to it, where the peers wrote them. What it does hold is the completions of sends,
// in a ring whose capacity is the sum of the send depths.
//
// An idle queue pair costs one load of a cached line per Poll.
//
// Threads: that of the queue (transport/completion_queue.h), but RaiseAttention and WakeIfArmed:
// any thread, as long as the queue lives.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "glog/logging.h"
#include "verbena/transport/completion_queue.h"
#include "verbena/transport/soft/completion_channel.h"

namespace verbena::soft {

class ControlThread;
class SoftQueuePair;

// Where Poll looks for the next receive completion of one queue pair. Kept in one array, so that
// walking over idle queue pairs touches nothing else of theirs.
struct ReceiveSlot {
  const std::atomic<uint32_t>* sequence;  // Of the next completion entry.
  uint32_t expected;                      // Its value once that is published.
  SoftQueuePair* queue_pair;
};

class SoftCompletionQueue final : public CompletionQueue {
 public:
  SoftCompletionQueue(uint32_t depth, SoftCompletionChannel* channel, ControlThread* control,
                      bool heavy_barrier);
  ~SoftCompletionQueue() override;

  size_t Poll(std::span<WorkCompletion> completions) override;
  absl::Status Arm(bool solicited_only) override;
  uint32_t depth() const override { return depth_; }

  // For queue pairs: -----------------------------------------------------------------------------

  // Reserves `entries`. Errors: RESOURCE_EXHAUSTED naming both numbers.
  absl::Status Reserve(uint32_t entries);
  void Release(uint32_t entries) { reserved_ -= entries; }

  void AddQueuePair(SoftQueuePair* queue_pair);     // Once, as send queue, receive queue or both.
  void RemoveQueuePair(SoftQueuePair* queue_pair);  // Its completions are dropped, too.
  void AddReceiveSlot(const ReceiveSlot& slot);

  // Completion of a send. There is room: the sender holds a slot of its send queue.
  void Push(const WorkCompletion& completion, SoftQueuePair* queue_pair) {
    DCHECK_LT(tail_ - head_, capacity_);
    ring_[tail_++ & (capacity_ - 1)] = {completion, queue_pair};
    if (armed_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      WakeIfArmed(completion.status != CompletionStatus::kSuccess);
    }
  }
  // The queue pair has sends that wait (until Redrive says no), receives to flush (until
  // FlushReceives is through). Repeating is harmless.
  void AddStalled(SoftQueuePair* queue_pair);
  void AddFlushing(SoftQueuePair* queue_pair);

  // The next Poll calls HandleAttention of the queue pairs that want it.
  void RaiseAttention() { attention_.store(1, std::memory_order_seq_cst); }
  // Signals the channel if the queue is armed: for any completion, or, with `error`, even if it is
  // armed for solicited ones only. Disarms.
  void WakeIfArmed(bool error);

  SoftCompletionChannel* channel() const { return channel_; }

 private:
  struct LocalCompletion {
    WorkCompletion completion;
    SoftQueuePair* queue_pair;
  };

  void HandleAttention();
  void RedriveStalled();
  size_t PollLocal(std::span<WorkCompletion> completions);
  size_t PollReceives(std::span<WorkCompletion> completions);
  size_t PollFlushed(std::span<WorkCompletion> completions);

  // Any thread writes, rarely.
  alignas(64) std::atomic<uint32_t> attention_{0};
  std::atomic<uint32_t> armed_{0};  // kWakeAny | kWakeSolicited, for completions made here.

  // The poller's own.
  alignas(64) uint32_t head_ = 0;  // Of ring_: both count for ever.
  uint32_t tail_ = 0;
  uint32_t capacity_;  // A power of two.
  bool sends_first_ = false;
  size_t next_slot_ = 0;
  std::unique_ptr<LocalCompletion[]> ring_;
  std::vector<ReceiveSlot> receive_slots_;
  std::vector<SoftQueuePair*> stalled_;
  std::vector<SoftQueuePair*> flushing_;
  std::vector<SoftQueuePair*> queue_pairs_;

  const uint32_t depth_;
  uint32_t reserved_ = 0;
  SoftCompletionChannel* const channel_;
  ControlThread* const control_;
  const bool heavy_barrier_;
};

}  // namespace verbena::soft
