// SPDX-License-Identifier: Apache-2.0
//
// A reliable-connected queue pair of verbs, with its own account of what is outstanding.
//
// The account decides when a queue is full, whatever depth the provider rounded up to, so that the
// completion queues never overrun; and it gives the user's wr_id back (work_id.h).
//
// Threads: the poller's; state() also looks at what the device's event thread found.
// Lifetime: destroying it disconnects, destroys the pair in the hardware, and then takes what is
// left of it out of the completion queues.
//
// Sources: ibv_create_qp(3), ibv_modify_qp(3), ibv_post_send(3), ibv_post_recv(3).

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/transport/queue_pair.h"
#include "verbena/transport/rdma/handles.h"
#include "verbena/transport/rdma/work_id.h"

namespace verbena::rdma {

class RdmaCompletionQueue;
class RdmaConnectionManager;
class RdmaDevice;
class RdmaProtectionDomain;
class RdmaSharedReceiveQueue;

// User wr_ids of requests that complete in order, by sequence number.
class OutstandingRequests {
 public:
  explicit OutstandingRequests(uint32_t depth);
  bool full() const { return posted_ - retired_ >= depth_; }
  uint32_t room() const { return depth_ - (posted_ - retired_); }
  uint32_t next() const { return posted_; }
  void Push(uint64_t user_id) { ids_[posted_++ & mask_] = user_id; }
  void Unpush(uint32_t count) { posted_ -= count; }
  // The request `sequence` is complete, and so are all before it.
  uint64_t Retire(uint32_t sequence) {
    retired_ = sequence + 1;
    return ids_[sequence & mask_];
  }
  bool IsOutstanding(uint32_t sequence) const {
    return posted_ - sequence <= posted_ - retired_ && posted_ != sequence;
  }
  uint32_t retired() const { return retired_; }

 private:
  const uint32_t depth_;
  const uint32_t mask_;
  std::vector<uint64_t> ids_;
  uint32_t posted_ = 0;
  uint32_t retired_ = 0;
};

class RdmaQueuePair final : public QueuePair {
 public:
  static absl::StatusOr<std::unique_ptr<RdmaQueuePair>> Create(RdmaProtectionDomain* domain,
                                                               const QueuePairOptions& options);
  ~RdmaQueuePair() override;

  absl::Status PostSend(std::span<const SendWorkRequest> requests, size_t* accepted) override;
  absl::Status PostRecv(std::span<const RecvWorkRequest> requests, size_t* accepted) override;
  QueuePairState state() const override;
  void MoveToError() override;
  uint32_t number() const override { return pair_->qp_num; }
  QueuePairCounters counters() const override;

  // ---- For the completion queue ----

  // Return the user's wr_id.
  uint64_t RetireSend(uint32_t sequence, CompletionStatus status);
  uint64_t RetireRecv(uint32_t sequence, CompletionStatus status);
  void OnSharedReceive(CompletionStatus status);

  // ---- For the connection manager ----

  ibv_qp* handle() const { return pair_.get(); }
  RdmaDevice* device() const { return device_; }
  // Errors: UNAVAILABLE.
  absl::Status Modify(ibv_qp_attr& attributes, int mask);
  void set_state(QueuePairState state) { state_.store(state, std::memory_order_relaxed); }
  // Any thread.
  void MarkError() { set_state(QueuePairState::kError); }
  // The manager that has to be told of the pair's end.
  RdmaConnectionManager* manager() const { return manager_; }
  void set_manager(RdmaConnectionManager* manager) { manager_ = manager; }

 private:
  RdmaQueuePair(RdmaProtectionDomain* domain, const QueuePairOptions& options);
  absl::Status Reserve();
  absl::Status CreateHardware();
  absl::Status MoveToInit();
  absl::Status CheckSend(const SendWorkRequest& request) const;
  void FillSend(const SendWorkRequest& request, ibv_send_wr* work) const;
  size_t PostChunk(std::span<const SendWorkRequest> requests, absl::Status* status);
  absl::Status CheckRecv(const RecvWorkRequest& request) const;
  size_t PostRecvChunk(std::span<const RecvWorkRequest> requests, absl::Status* status);
  void NoteStatus(CompletionStatus status);
  // Soft-iWARP does not look at queues of a pair in error: what is posted to it is flushed here.
  size_t FlushSends(std::span<const SendWorkRequest> requests, absl::Status* status);
  size_t FlushRecvs(std::span<const RecvWorkRequest> requests, absl::Status* status);
  bool FlushesHere() const;
  void ModifyToError();

  RdmaProtectionDomain* const domain_;
  RdmaDevice* const device_;
  const QueuePairOptions options_;
  RdmaCompletionQueue* const send_queue_;
  RdmaCompletionQueue* const recv_queue_;
  RdmaSharedReceiveQueue* const shared_;
  uint32_t reserved_send_ = 0;
  uint32_t reserved_recv_ = 0;
  bool counted_ = false;   // Against the device's limit.
  bool attached_ = false;  // To the completion queues.
  WorkId send_place_;
  WorkId recv_place_;
  PairHandle pair_;
  RdmaConnectionManager* manager_ = nullptr;

  std::atomic<QueuePairState> state_{QueuePairState::kReset};
  bool error_requested_ = false;  // By us; else the hardware found a reason.
  OutstandingRequests sends_;
  OutstandingRequests recvs_;
  uint32_t last_read_ = ~0u;  // Sequence of the newest READ.
  uint64_t messages_received_ = 0;
  uint64_t sends_failed_ = 0;
  uint64_t receiver_not_ready_before_ = 0;  // The port's count when the pair was made.
};

}  // namespace verbena::rdma
