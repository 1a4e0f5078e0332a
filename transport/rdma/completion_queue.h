// SPDX-License-Identifier: Apache-2.0
//
// A completion queue of verbs, with the places of the queue pairs attached to it.
//
// It is never overrun: a pair is attached only where there is room for all its work requests, and
// the pairs count their own requests, because a provider may take more than it was asked for
// (rxe rounds up to 2^n - 1, and retires unsignalled sends by itself).
//
// Threads: the poller's, but for MarkBroken and status().
// Sources: ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3); the overrun's consequences:
// NOTES of ibv_poll_cq(3).

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/completion_queue.h"
#include "verbena/transport/rdma/handles.h"
#include "verbena/transport/rdma/work_id.h"

namespace verbena::rdma {

class RdmaCompletionChannel;
class RdmaDevice;
class RdmaQueuePair;

class RdmaCompletionQueue final : public CompletionQueue {
 public:
  static absl::StatusOr<std::unique_ptr<RdmaCompletionQueue>> Create(
      RdmaDevice* device, uint32_t depth, RdmaCompletionChannel* channel);
  ~RdmaCompletionQueue() override;

  size_t Poll(std::span<WorkCompletion> completions) override;
  absl::Status Arm(bool solicited_only) override;
  uint32_t depth() const override { return depth_; }
  absl::Status status() const override;

  // Room for `entries` completions of a queue named `option`. Errors: RESOURCE_EXHAUSTED.
  absl::Status Reserve(uint32_t entries, std::string_view option);
  void Unreserve(uint32_t entries) { reserved_ -= entries; }

  // A place for the pair, whose index and generation go into its work ids.
  WorkId Attach(RdmaQueuePair* pair);
  // Frees the place and drops what the hardware still holds of it. The pair must be destroyed in
  // the hardware first, so that nothing follows.
  void Detach(WorkId place, uint32_t pair_number);

  // The pair is in error, and the hardware may owe it flushes: asks it for them
  // (RdmaQueuePair::FlushWhatIsLost) once the hardware has no completions left.
  void SweepLater(RdmaQueuePair* pair);
  void PushFlushed(WorkId id, uint32_t pair_number);

  // The device said that the queue can't be used any more. Any thread.
  void MarkBroken(absl::Status why);
  ibv_cq* handle() const { return queue_.get(); }

 private:
  struct Place {
    RdmaQueuePair* pair = nullptr;
    uint32_t generation = 0;
  };

  RdmaCompletionQueue(RdmaDevice* device, uint32_t depth, RdmaCompletionChannel* channel)
      : device_(device), depth_(depth), channel_(channel) {}
  // False for completions that nobody waits for any more.
  bool Translate(const ibv_wc& from, WorkCompletion* to);
  size_t TakeKept(std::deque<ibv_wc>& kept, std::span<WorkCompletion> completions);
  // Whether `entry` is of that pair; a receive that it took from a shared queue is given back.
  bool BelongsTo(const ibv_wc& entry, WorkId place, uint32_t pair_number);

  RdmaDevice* const device_;
  const uint32_t depth_;
  RdmaCompletionChannel* const channel_;  // Or null.
  QueueHandle queue_;
  uint32_t reserved_ = 0;
  std::vector<Place> places_;
  std::vector<uint32_t> free_places_;
  // Completions of other pairs that Detach had to take out of the hardware.
  std::deque<ibv_wc> kept_;
  std::vector<RdmaQueuePair*> to_sweep_;
  std::deque<ibv_wc> flushed_;  // PushFlushed, and not polled yet.
  bool armed_ = false;

  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;
  absl::Status broken_status_;  // Under mutex_.
};

}  // namespace verbena::rdma
