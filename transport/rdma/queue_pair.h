// SPDX-License-Identifier: Apache-2.0
//
// A reliable-connected queue pair of verbs, with its own account of what is outstanding: its life
// in queue_pair.cc, sending in send_engine.cc, receiving in recv_engine.cc.
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

#include "absl/status/statusor.h"
#include "verbena/transport/queue_pair.h"
#include "verbena/transport/rdma/handles.h"
#include "verbena/transport/rdma/outstanding_requests.h"
#include "verbena/transport/rdma/work_id.h"

namespace verbena::rdma {

class RdmaCompletionQueue;
class RdmaConnectionManager;
class RdmaDevice;
class RdmaProtectionDomain;
class RdmaSharedReceiveQueue;

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

  bool IsOutstanding(WorkId id) const {
    return (id.kind == WorkId::Kind::kSend ? sends_ : recvs_).IsOutstanding(id.sequence);
  }
  // Pushes a flush into `queue` for all that the hardware, which has no more completions now, owes
  // it.
  void FlushWhatIsLost(RdmaCompletionQueue& queue);
  // These return the user's wr_id.
  uint64_t RetireSend(uint32_t sequence, CompletionStatus status);
  uint64_t RetireRecv(uint32_t sequence, CompletionStatus status);
  void OnSharedReceive(CompletionStatus status);

  // ---- For the connection manager ----

  // Errors: UNAVAILABLE.
  absl::Status Modify(ibv_qp_attr& attributes, int mask);
  void set_state(QueuePairState state) { state_.store(state, std::memory_order_relaxed); }
  // Any thread.
  void MarkError() { set_state(QueuePairState::kError); }
  // The manager that has to be told of the pair's end.
  void set_manager(RdmaConnectionManager* manager) { manager_ = manager; }

 private:
  RdmaQueuePair(RdmaProtectionDomain* domain, const QueuePairOptions& options);
  absl::Status Reserve();
  absl::Status CreateHardware();
  absl::Status MoveToInit();
  absl::Status CheckSend(const SendWorkRequest& request) const;
  void FillSend(const SendWorkRequest& request, ibv_send_wr* work) const;
  // Post a chunk, or less if a request is refused; return how many were accepted.
  size_t PostChunk(std::span<const SendWorkRequest> requests, absl::Status* status);
  absl::Status CheckRecv(const RecvWorkRequest& request) const;
  size_t PostRecvChunk(std::span<const RecvWorkRequest> requests, absl::Status* status);
  void NoteStatus(CompletionStatus status);
  void NoteReceived();
  // Soft-iWARP does not look at the queues of a pair in error, nor at what is posted while it gets
  // there: the completion queues flush that, when the hardware has nothing more.
  bool IsFlushedHere() const;
  void SweepLater();
  // As PostChunk and PostRecvChunk, and to be flushed.
  size_t KeepSends(std::span<const SendWorkRequest> requests, absl::Status* status);
  size_t KeepRecvs(std::span<const RecvWorkRequest> requests, absl::Status* status);
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
  bool error_requested_ = false;     // By us; else the hardware found a reason.
  bool early_receive_told_ = false;  // To the manager.
  OutstandingRequests sends_;
  OutstandingRequests recvs_;
  uint32_t last_read_ = ~0u;  // Sequence of the newest READ.
  uint64_t messages_received_ = 0;
  uint64_t sends_failed_ = 0;
  uint64_t receiver_not_ready_before_ = 0;  // The port's count when the pair was made.
};

}  // namespace verbena::rdma
