// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/completion_queue.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "verbena/base/cpu_relax.h"
#include "verbena/transport/soft/barrier.h"
#include "verbena/transport/soft/control_thread.h"
#include "verbena/transport/soft/queue_pair.h"
#include "verbena/transport/soft/segment.h"

namespace verbena::soft {
namespace {

void AddOnce(std::vector<SoftQueuePair*>* list, SoftQueuePair* queue_pair) {
  if (std::find(list->begin(), list->end(), queue_pair) == list->end()) {
    list->push_back(queue_pair);
  }
}

}  // namespace

SoftCompletionQueue::SoftCompletionQueue(uint32_t depth, SoftCompletionChannel* channel,
                                         ControlThread* control, bool heavy_barrier)
    : capacity_(std::bit_ceil(depth)),
      ring_(new LocalCompletion[capacity_]),  // Not touched before use.
      depth_(depth),
      channel_(channel),
      control_(control),
      heavy_barrier_(heavy_barrier) {}

SoftCompletionQueue::~SoftCompletionQueue() {
  CHECK(queue_pairs_.empty()) << queue_pairs_.size() << " queue pairs outlive their queue";
  control_->ForgetKick(this);
}

size_t SoftCompletionQueue::Poll(std::span<WorkCompletion> completions) {
  if (attention_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    HandleAttention();
  if (!stalled_.empty()) [[unlikely]]
    RedriveStalled();

  // Receives first: what a peer sent before one of our sends completed is the older. Unless they
  // alone filled the last batch: then it is the sends' turn, whose slots must become free.
  size_t count = 0;
  if (sends_first_) [[unlikely]]
    count = PollLocal(completions);
  count += PollReceives(completions.subspan(count));
  sends_first_ = head_ != tail_ && count == completions.size();
  if (head_ != tail_) count += PollLocal(completions.subspan(count));
  if (!flushing_.empty()) [[unlikely]]
    count += PollFlushed(completions.subspan(count));
  // Leave the cache line that we wait for alone for a moment. A reader that loads it all the time
  // takes it away from the writer between two of its stores, and the writer has to fetch it again:
  // without this a round trip takes a quarter longer.
  if (count == 0) CpuRelax();
  return count;
}

inline size_t SoftCompletionQueue::PollLocal(std::span<WorkCompletion> completions) {
  size_t count = 0;
  while (head_ != tail_ && count < completions.size()) {
    const LocalCompletion& local = ring_[head_++ & (capacity_ - 1)];
    completions[count++] = local.completion;
    local.queue_pair->FreeSendSlot();
  }
  return count;
}

inline size_t SoftCompletionQueue::PollReceives(std::span<WorkCompletion> completions) {
  const size_t slots = receive_slots_.size();
  size_t count = 0;
  size_t index = next_slot_;
  for (size_t i = 0; i < slots && count < completions.size(); ++i, ++index) {
    if (index >= slots) index = 0;
    ReceiveSlot& slot = receive_slots_[index];
    if (slot.sequence->load(std::memory_order_acquire) != slot.expected) continue;
    count += slot.queue_pair->TakeReceives(&slot, completions.subspan(count));
  }
  // Fair: who came last now comes first next time.
  next_slot_ = index >= slots ? 0 : index;
  return count;
}

size_t SoftCompletionQueue::PollFlushed(std::span<WorkCompletion> completions) {
  size_t count = 0;
  std::erase_if(flushing_, [&](SoftQueuePair* queue_pair) {
    bool finished = false;
    count += queue_pair->FlushReceives(completions.subspan(count), &finished);
    return finished;
  });
  return count;
}

void SoftCompletionQueue::HandleAttention() {
  attention_.exchange(0, std::memory_order_seq_cst);
  for (size_t i = 0; i < queue_pairs_.size(); ++i) queue_pairs_[i]->HandleAttention();
}

void SoftCompletionQueue::RedriveStalled() {
  std::erase_if(stalled_, [](SoftQueuePair* queue_pair) { return !queue_pair->Redrive(); });
}

absl::Status SoftCompletionQueue::Arm(bool solicited_only) {
  if (channel_ == nullptr) {
    return absl::FailedPreconditionError(
        "the completion queue has no channel; create it with one to arm it");
  }
  const uint32_t bits = solicited_only ? kWakeSolicited : kWakeAny;
  armed_.fetch_or(bits, std::memory_order_seq_cst);
  for (const ReceiveSlot& slot : receive_slots_) slot.queue_pair->ArmReceives(bits);
  // Whoever publishes from here on sees the bits, or the caller's next Poll sees what it published.
  FullFence();
  if (heavy_barrier_) HeavyBarrier();
  if (!stalled_.empty() || !flushing_.empty()) control_->RequestKick(this);
  return absl::OkStatus();
}

void SoftCompletionQueue::WakeIfArmed(bool error) {
  const uint32_t armed = armed_.load(std::memory_order_seq_cst);
  if (channel_ == nullptr || (armed & (error ? kWakeAny | kWakeSolicited : kWakeAny)) == 0) return;
  armed_.store(0, std::memory_order_relaxed);
  channel_->Signal();
}

absl::Status SoftCompletionQueue::Reserve(uint32_t entries) {
  if (entries > depth_ - reserved_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the completion queue holds ", depth_, " entries, of which ", reserved_,
                     " are reserved; the queue pair needs ", entries,
                     " more. Create it with the sum of the depths of all queues attached."));
  }
  reserved_ += entries;
  return absl::OkStatus();
}

void SoftCompletionQueue::AddQueuePair(SoftQueuePair* queue_pair) {
  AddOnce(&queue_pairs_, queue_pair);
  stalled_.reserve(queue_pairs_.size());  // Stalling is the data path's.
}

void SoftCompletionQueue::AddReceiveSlot(const ReceiveSlot& slot) {
  receive_slots_.push_back(slot);
}

void SoftCompletionQueue::RemoveQueuePair(SoftQueuePair* queue_pair) {
  std::erase(queue_pairs_, queue_pair);
  std::erase(stalled_, queue_pair);
  std::erase(flushing_, queue_pair);
  std::erase_if(receive_slots_,
                [&](const ReceiveSlot& slot) { return slot.queue_pair == queue_pair; });
  uint32_t kept = head_;
  for (uint32_t i = head_; i != tail_; ++i) {
    const LocalCompletion local = ring_[i & (capacity_ - 1)];
    if (local.queue_pair != queue_pair) ring_[kept++ & (capacity_ - 1)] = local;
  }
  tail_ = kept;
}

void SoftCompletionQueue::AddStalled(SoftQueuePair* queue_pair) {
  AddOnce(&stalled_, queue_pair);
  // Nobody else would wake a caller that goes to sleep now.
  if (armed_.load(std::memory_order_relaxed) != 0) control_->RequestKick(this);
}

void SoftCompletionQueue::AddFlushing(SoftQueuePair* queue_pair) {
  AddOnce(&flushing_, queue_pair);
  WakeIfArmed(/*error=*/true);
}

}  // namespace verbena::soft
