// SPDX-License-Identifier: Apache-2.0
//
// A reliable-connected queue pair over shared memory.
//
// The requester executes everything itself, inside PostSend: it finds the receive in the peer's
// segment or the key in the peer's table, checks it, copies, and publishes a completion entry.
// What has to wait (receiver not ready, region not mapped yet, an invalidated key still in use)
// is queued with everything behind it, and driven on by CompletionQueue::Poll.
//
//   kInit --connected--> kReadyToSend --any error, Disconnect, peer gone--> kError
//     \------------------MoveToError------------------------------------------/
//
// On the way to kError: (1) state_ and kWakeClosed are set, by any thread; (2) EnterError, on the
// poller's thread, makes the peer's last publications visible and flushes the sends; (3) once the
// peer is known to touch our memory no more, and what it published is delivered, Poll flushes the
// receives.
//
// Threads: one at a time, that of the completion queues. What other threads call is marked.
// Files: queue_pair.cc (life), send_engine.cc (SEND family and the waiting), remote_engine.cc
// (WRITE, READ, atomics, windows), recv_engine.cc.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/queue_pair.h"
#include "verbena/transport/soft/barrier.h"
#include "verbena/transport/soft/completion_queue.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/key_table.h"
#include "verbena/transport/soft/segment.h"
#include "verbena/transport/soft/shared_memory.h"
#include "verbena/transport/soft/wire.h"

namespace verbena::soft {

class SoftProtectionDomain;
class SoftSharedReceiveQueue;

// A receive as we keep it for ourselves; what the segment says of it is never read back.
struct PostedReceive {
  uint64_t wr_id;
  uint32_t length;  // Sum of the parts.
  uint16_t sge_count;
  uint16_t flags;  // One of kReceiveDirect, kReceiveStaged, kReceiveBad.
  ScatterGatherEntry sge[kReceiveSgeMax];
};
static_assert(sizeof(PostedReceive) == 64);

// What the peer gave us at connect, checked and mapped.
struct PeerResources {
  Mapping segment;
  uint32_t slots = 0;
  UniqueFd event;
  Mapping keys;
  uint32_t queue_pair = 0;
  uint8_t receiver_not_ready_timer = 0;
  bool fence = false;  // barrier.h
};

// A region of the peer's: appears, or goes (then without a mapping).
struct RegionUpdate {
  uint32_t key;
  bool writable;
  Mapping mapping;
};

class SoftQueuePair final : public QueuePair {
 public:
  static absl::StatusOr<std::unique_ptr<SoftQueuePair>> Create(SoftProtectionDomain* domain,
                                                               const QueuePairOptions& options);
  ~SoftQueuePair() override;

  absl::Status PostSend(std::span<const SendWorkRequest> requests, size_t* accepted) override;
  absl::Status PostRecv(std::span<const RecvWorkRequest> requests, size_t* accepted) override;
  QueuePairState state() const override { return state_.load(std::memory_order_acquire); }
  void MoveToError() override;
  uint32_t number() const override { return number_; }
  QueuePairCounters counters() const override { return counters_; }

  // For the completion queue ---------------------------------------------------------------------

  size_t TakeReceives(ReceiveSlot* slot, std::span<WorkCompletion> completions);
  size_t FlushReceives(std::span<WorkCompletion> completions, bool* finished);
  bool Redrive();  // Executes sends that wait. False: none waits any more.
  void HandleAttention();
  void FreeSendSlot() { --sends_in_use_; }
  void ArmReceives(uint32_t bits) { own_.control->wake.fetch_or(bits, std::memory_order_seq_cst); }

  // For the shared receive queue -----------------------------------------------------------------

  void PublishShared();     // Shows the peer as many receives as the shared queue has.
  void ShowSharedLength();  // Of those shown: longest() has changed.
  SoftCompletionQueue& recv_queue() { return *recv_queue_; }

  // For the control thread, under its mutex ------------------------------------------------------

  SoftProtectionDomain& domain() { return *domain_; }
  uint32_t slots() const { return own_.mask + 1; }
  int segment_fd() const { return segment_.fd.get(); }
  int event_fd() const { return event_.get(); }
  uint8_t retries() const { return retries_; }
  // kInit -> kReadyToSend. False: it has moved to kError before.
  bool Establish(PeerResources peer, uint8_t receiver_not_ready_retries);
  void UpdateRegion(RegionUpdate update);
  // Any thread. To kError; the poller is told. `peer_gone`: nobody writes to our memory any more.
  void Fail(bool peer_gone);

 private:
  enum class Outcome : uint8_t {
    kDone,              // Completed, or failed with a completion.
    kReceiverNotReady,  // The rest waits, with everything behind it.
    kRegionMissing,
    kPeerExecuting,
  };
  enum class Refusal : uint8_t {
    kNone,
    kFull,
    kTooManySge,
    kInlineTooLong,
    kBadAtomic,
    kOpcode,
    kNotConnected
  };
  enum class RemoteUse : uint8_t { kOk, kMissing, kRefused, kPeerLies };

  // A request that waits, with what its pointers pointed at.
  struct PendingSend {
    SendWorkRequest request;
    ScatterGatherEntry sge[kSendSgeMax];
  };
  struct RemoteRegion {
    uint32_t key = 0;
    bool writable = false;
    Mapping mapping;
  };

  SoftQueuePair(SoftProtectionDomain* domain, const QueuePairOptions& options);
  absl::Status Allocate();

  // send_engine.cc
  Refusal PostOne(const SendWorkRequest& request);
  bool InlineFits(const SendWorkRequest& request) const;
  Refusal PostRare(const SendWorkRequest& request);
  Refusal Check(const SendWorkRequest& request) const;
  absl::Status ToStatus(Refusal refusal) const;
  void Enqueue(const SendWorkRequest& request);
  void Wait(const SendWorkRequest& request, Outcome outcome);  // Executed in vain: queues it.
  Outcome Execute(const SendWorkRequest& request);
  Outcome ExecuteSend(const SendWorkRequest& request, WireOpcode opcode);
  Outcome SendSmall(const SendWorkRequest& request, WireOpcode opcode, uint32_t bytes);
  Outcome SendLarge(const SendWorkRequest& request, WireOpcode opcode, uint32_t bytes);
  bool ReceiveAvailable();
  Outcome NoReceive(const SendWorkRequest& request);
  Outcome ExecuteSendWithInvalidate(const SendWorkRequest& request);
  void Publish(const SendWorkRequest& request, WireOpcode opcode, uint32_t bytes, uint8_t flags,
               WireStatus status);
  Outcome FinishPublication(const SendWorkRequest& request, uint32_t bytes);
  void WakePeer(bool solicited);
  bool PeerClosed() const {
    return (tx_.control->wake.load(std::memory_order_relaxed) & kWakeClosed) != 0;
  }
  Outcome FailReceive(const SendWorkRequest& request, WireOpcode opcode, uint32_t bytes,
                      WireStatus status);
  // Notes that the first waiting request waits (still). True: long enough; see stall_status_.
  bool StallEnds(Outcome outcome);
  bool ReceiverNotReadyAgain(std::chrono::steady_clock::time_point now);

  // remote_engine.cc
  Outcome ExecuteWrite(const SendWorkRequest& request, bool with_imm);
  Outcome ExecuteRead(const SendWorkRequest& request);
  Outcome ExecuteAtomic(const SendWorkRequest& request);
  Outcome ExecuteBind(const SendWorkRequest& request);
  Outcome ExecuteInvalidate(const SendWorkRequest& request);
  Outcome FailRemoteUse(const SendWorkRequest& request, RemoteUse use);
  RemoteUse Resolve(const RemoteTarget& target, uint64_t bytes, AccessFlags need,
                    std::byte** memory);
  std::byte* MapPeerMemory(uint32_t region, uint64_t offset, uint64_t bytes, bool write,
                           bool* missing);
  bool InvalidatedByUs(uint32_t key) const;
  void RememberInvalidated(uint32_t key);

  // Shared by both.
  bool SumAndCheckLocal(const SendWorkRequest& request, AccessFlags access, uint64_t* bytes);
  void Succeed(const SendWorkRequest& request, uint32_t bytes) {
    if ((request.flags & kSendSignaled) != 0 || signal_all_) {
      Complete(request, CompletionStatus::kSuccess, bytes);
    }
  }
  void Complete(const SendWorkRequest& request, CompletionStatus status, uint32_t bytes);
  // Completes with an error and enters kError; FailAtPeer also tells the peer of its part in it.
  Outcome FailSend(const SendWorkRequest& request, CompletionStatus status);
  Outcome FailAtPeer(const SendWorkRequest& request, CompletionStatus status, Fault fault);

  // recv_engine.cc
  void PublishReceive(const PostedReceive& posted);
  void StoreReceiveTail();
  // False: the entry has to wait for a shared receive, or may not be there at all.
  bool TakeOne(const CompletionEntry& entry, WorkCompletion* completion);
  CompletionStatus Deliver(const PostedReceive& posted, const CompletionEntry& entry,
                           WorkCompletion* completion);
  CompletionStatus DeliverPayload(const PostedReceive& posted, const CompletionEntry& entry,
                                  uint32_t bytes);
  bool InvalidateForPeer(uint32_t key);
  void RefuseEntries(bool peer_is_at_fault);

  // queue_pair.cc
  void EnterError();
  void SettleWithPeer();
  void AwaitPeer();
  void FlushSends();
  void RaiseAttention();
  void TakeInbox();
  bool PeerIsStill();  // Whether no copy that began before EnterError can still be going on.
  bool connected() const { return tx_.control != nullptr; }

  // Hot, the sender's. -----------------------------------------------------------------------
  std::atomic<QueuePairState> state_{QueuePairState::kInit};  // Any thread on the way to kError.
  bool fence_ = true;
  bool signal_all_;
  bool entered_error_ = false;
  uint32_t pending_count_ = 0;  // Sends that wait.
  uint32_t sends_in_use_ = 0;   // Those, and completions not polled yet.
  uint32_t send_depth_;
  uint32_t send_sge_max_;
  uint32_t sent_ = 0;        // Receives of the peer's that we used.
  uint32_t tail_seen_ = 0;   // Receives that the peer had posted when we last looked.
  uint32_t look_below_ = 0;  // ControlPage::receive_tail, high half.
  SegmentView tx_;           // The peer's segment.
  const KeyTable* keys_;

  // Hot, the receiver's. ---------------------------------------------------------------------
  alignas(64) SegmentView own_;
  uint32_t taken_ = 0;         // Receives completed.
  uint32_t posted_count_ = 0;  // Receives shown to the peer.
  uint32_t own_look_below_ = 0;
  uint32_t recv_depth_;
  std::unique_ptr<PostedReceive[]> posted_;  // `slots`; null with a shared receive queue.
  SoftSharedReceiveQueue* shared_;

  // Warm and cold. ---------------------------------------------------------------------------
  uint32_t executing_count_ = 0;  // What we write to the peer's ControlPage::executing.
  uint32_t peer_queue_pair_ = 0;
  uint32_t own_executing_seen_ = 0;  // Of our ControlPage::executing, at EnterError.
  uint32_t invalidate_seen_ = 0;     // The same at a LOCAL_INVALIDATE that waits.
  bool invalidate_waits_ = false;
  bool receives_closed_ = false;  // No completion entry is taken any more.
  bool peer_still_ = false;       // PeerIsStill(), remembered.
  std::atomic<bool> peer_gone_{false};
  std::atomic<bool> attention_{false};
  QueuePairCounters counters_;

  uint32_t pending_head_ = 0;
  Outcome stall_ = Outcome::kDone;
  CompletionStatus stall_status_ = CompletionStatus::kSuccess;
  uint8_t stall_retries_left_ = 0;
  uint8_t retries_ = 7;
  uint8_t peer_timer_ = 12;
  std::chrono::steady_clock::time_point stall_until_;
  std::chrono::steady_clock::time_point flush_until_;
  std::unique_ptr<PendingSend[]> pending_;       // send_depth_
  std::unique_ptr<std::byte[]> pending_inline_;  // send_depth_ * inline_bytes_max_

  SoftProtectionDomain* const domain_;
  SoftCompletionQueue* const send_queue_;
  SoftCompletionQueue* const recv_queue_;
  const uint32_t number_;
  const uint32_t recv_sge_max_;
  const uint32_t inline_bytes_max_;
  uint32_t send_reserved_ = 0;
  uint32_t recv_reserved_ = 0;
  bool watched_ = false;
  SealedMemory segment_;
  UniqueFd event_;
  PeerResources peer_;
  const KeyEntry* peer_keys_ = nullptr;
  std::vector<RemoteRegion> remote_regions_;  // By index of the key.
  std::vector<uint32_t> invalidated_;         // Keys that our SEND_WITH_INVALIDATE took back.

  std::mutex inbox_mutex_;
  std::vector<RegionUpdate> inbox_;  // Bounded: see UpdateRegion.
};

inline bool SoftQueuePair::SumAndCheckLocal(const SendWorkRequest& request, AccessFlags access,
                                            uint64_t* bytes) {
  // Inline data needs no key; it exists for requests that read local memory only.
  const bool check = access != kAccessLocalRead || (request.flags & kSendInline) == 0;
  uint64_t sum = 0;
  for (const ScatterGatherEntry& sge : request.sg_list) {
    sum += sge.length;
    if (check && sge.length != 0 &&
        keys_->Find(sge.local_key, sge.address, sge.length, access) == nullptr) [[unlikely]] {
      return false;
    }
  }
  *bytes = sum;
  return true;
}

inline void SoftQueuePair::Publish(const SendWorkRequest& request, WireOpcode opcode,
                                   uint32_t bytes, uint8_t flags, WireStatus status) {
  CompletionEntry& entry = tx_.completions[sent_ & tx_.mask];
  entry.length = bytes;
  entry.imm_or_key =
      opcode == WireOpcode::kSendWithInvalidate ? request.invalidate_key.value : request.imm_data;
  entry.opcode = opcode;
  entry.flags = flags;
  entry.status = status;
  entry.reserved = 0;
  entry.sequence.store(++sent_, std::memory_order_release);
}

inline SoftQueuePair::Outcome SoftQueuePair::FinishPublication(const SendWorkRequest& request,
                                                               uint32_t bytes) {
  LightBarrier(fence_);
  const uint32_t wake = tx_.control->wake.load(std::memory_order_relaxed);
  if (wake != 0) [[unlikely]] {
    // Closed before or while we published: nobody may ever look at the entry.
    if ((wake & kWakeClosed) != 0) return FailSend(request, CompletionStatus::kRetryExceeded);
    WakePeer((request.flags & kSendSolicited) != 0);
  }
  ++counters_.messages_sent;
  Succeed(request, bytes);
  return Outcome::kDone;
}

}  // namespace verbena::soft
