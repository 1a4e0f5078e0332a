// SPDX-License-Identifier: Apache-2.0
//
// Endpoint: one connection's rings. It owns the pre-posted receives, the credit account, the send
// slots, send-queue accounting and selective signalling, and the drain before anything is freed.
// It is the same code on every device.
//
//   Reserve -> fill in place -> Commit        one frame; posted at once or batched until Service
//   OnCompletion -> Handler::OnFrame          one frame received; read in place
//   SendPayload -> zone -> chunks             one message that goes by RDMA WRITE (payload_path.h)
//   immediate -> Handler::OnLanded            one message that came so; read where it landed
//   LookAtPeer -> probe -> suspicion -> Fail  a peer that vanished
//   Fail or Close -> ... -> drained()         nothing of it is the device's any more
//
// Threads: the poller's, for every function. Lifetime: owned by the connection above it; when that
// is done with it, Poller::Bury keeps it until it is drained. No function here allocates, locks or
// makes a system call between Open and Fail.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/connection_memory.h"
#include "verbena/transport/credit_account.h"
#include "verbena/transport/device.h"
#include "verbena/transport/endpoint_host.h"
#include "verbena/transport/endpoint_options.h"
#include "verbena/transport/payload_path.h"
#include "verbena/transport/peer_watch.h"
#include "verbena/transport/receive_ring.h"
#include "verbena/transport/wire_format.h"
#include "verbena/transport/work_request_id.h"

namespace verbena {

class Endpoint final : private PayloadPort, private ReceiveRing::Owner {
 public:
  enum class Disposition {
    kConsumed,  // The receive slot is posted again.
    kKept,      // The handler has lent it, or reads it later and calls ReleaseReceive(slot).
  };

  // The layer above. All calls come on the poller's thread.
  class Handler {
   public:
    // A valid request, response or cancel. `frame` is the receive slot itself, 8-byte aligned.
    virtual Disposition OnFrame(uint32_t slot, std::span<const std::byte> frame) = 0;
    // A valid request or response that landed in registered memory, which the peer can't change any
    // more. `frame` may be kept as long as wanted.
    virtual void OnLanded(Buffer frame) {
      (void)frame;
      LOG(DFATAL) << "a message landed at a layer that takes none";
    }
    // The peer has a message of this call that is too long for a slot. False: nobody waits for it.
    virtual bool OnZoneWanted(uint32_t call_id) {
      (void)call_id;
      return true;
    }
    // A message of this call that was to come (`sent`: by the peer), or was to be sent from here,
    // does not find the memory it needs.
    virtual void OnPayloadDenied(uint32_t call_id, const absl::Status& why, bool sent) {
      (void)call_id, (void)sent;
      LOG(DFATAL) << "a message was denied at a layer that has none: " << why;
    }
    // After WantWritable(): a data frame of any length can be reserved now.
    virtual void OnWritable() = 0;
    // Once, and the last call: the connection is over and why. Slots that were kept are gone.
    virtual void OnClosed(const absl::Status& why) = 0;
    // Whether something of the layer above ends only when the peer answers: then a silent peer is
    // asked sooner whether it is there.
    virtual bool AwaitsPeer() const { return true; }

   protected:
    ~Handler() = default;
  };

  // Which side of the connection this is.
  enum class Side { kConnecting, kAccepting };

  // Makes the queue pair and its memory, and posts the whole receive ring, so that the peer may
  // send the moment it is connected. Slow: registers memory. `handler` must outlive the endpoint
  // or be taken away by Detach().
  // Errors: INVALID_ARGUMENT (options), RESOURCE_EXHAUSTED (a device limit, named).
  // `device_owner` is kept as long as any Buffer that landed here.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Create(
      Device& device, std::shared_ptr<const void> device_owner, CompletionQueue& queue,
      const EndpointOptions& options, EndpointId id, EndpointHost& host, Handler* handler);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Memory of an idle endpoint with these options, without the device's own (endpoint_options.h has
  // the sum).
  static size_t MemoryBytes(const EndpointOptions& options);
  // Completion queue entries that one endpoint with these options can fill.
  static uint32_t CompletionsMax(const EndpointOptions& options);

  QueuePair& queue_pair() { return *queue_pair_; }
  EndpointId id() const { return id_; }
  // To connect or accept with: a hello of this `epoch`, and retries of the NIC that end about when
  // EndpointOptions::detection_time does.
  ConnectOptions MakeConnectOptions(uint64_t epoch) const;
  // Connected: sending may begin.
  void Open(const Hello& peer, Side side);
  bool is_open() const { return state_ == State::kOpen; }

  // ---- Sending ----

  // Longest frame, header included, that this side can send and the peer can take.
  size_t frame_bytes_max() const { return frame_bytes_max_; }
  // Longest frame that is to go so, and not by RDMA WRITE.
  size_t slot_frame_bytes_max() const { return slot_frame_bytes_max_; }
  // Whether Reserve would succeed for a data frame of any length up to frame_bytes_max().
  bool CanSend() const {
    return credits_.CanSpend(CreditClass::kData) && SendQueueFree() > 0 && SendSlotFree() &&
           state_ == State::kOpen;
  }
  // Memory for a frame of `bytes`, to be filled and given to Commit before any other call here;
  // 64-byte aligned. Null: no credit, no slot or no room in the send queue now. Then call
  // WantWritable() and try again when Handler::OnWritable() comes.
  // REQUIRES: sizeof(FrameHeader) <= bytes <= frame_bytes_max().
  std::byte* Reserve(size_t bytes, CreditClass credit_class = CreditClass::kData);
  // Writes the FrameHeader of the reserved frame and sends it: at once, or when batching at the
  // next Service() or when a batch is full.
  void Commit(FrameKind kind, uint32_t call_id, uint8_t flags = 0);
  void WantWritable() { want_writable_ = true; }

  // A frame that ends with `tail`, which is sent from where it is and must be as it is until then;
  // the endpoint refers to it as long as the device may read it.
  //
  // Whether that can be: the tail is registered here, or short enough to go inline. `bytes`: of what
  // stands before it. REQUIRES: the tail is not empty.
  bool CanSendFrom(const Buffer& tail, size_t bytes) const {
    DCHECK(!tail.empty());
    return bytes + tail.size() <= inline_bytes_max_ || IsRegistered(tail);
  }
  // As Reserve and Commit, for the first `bytes` of the frame. REQUIRES: CanSendFrom(tail, bytes).
  std::byte* ReserveBefore(const Buffer& tail, size_t bytes);
  void CommitBefore(const Buffer& tail, FrameKind kind, uint32_t call_id, uint8_t flags = 0);
  // Whether SendPayload takes memory as it is.
  bool CanRegister(const Buffer& buffer) const {
    return IsRegistered(buffer) || buffer.block()->memory != nullptr;
  }
  // Whether the device can read its memory as it is.
  bool IsRegistered(const Buffer& buffer) const {
    return buffer.block()->domain_id == memory_->domain_id();
  }

  // Tells the handler if it may write, posts what is queued, and does ServiceIdle's work if that
  // can wait no longer. The poller calls this once after each batch of completions, and after
  // calls that queued frames.
  void Service();
  // Posts released receives again, grants credits if due, and gives up a peer that is still
  // suspected. The poller calls this when it has found nothing else to do, so that it delays no
  // message.
  void ServiceIdle();
  bool WantsIdleService() const { return released_.size() >= repost_batch_; }

  // ---- Messages that go by RDMA WRITE ----

  // What messages may be built in.
  const std::shared_ptr<ConnectionMemory>& memory() { return memory_; }
  // Memory to put a message together in, or to copy one to. Slow the first time.
  // Errors: RESOURCE_EXHAUSTED naming the budget.
  absl::StatusOr<Buffer> TakeStaging(size_t bytes);
  // Sends a message, which began with a LandingPrefix: asks for a zone if there is none, then
  // writes it in chunks. Only when it can't be sent is that told, by OnPayloadDenied. Errors:
  // RESOURCE_EXHAUSTED (its memory can't be registered).
  absl::Status SendPayload(OutgoingFrame frame);
  // Gives up a message that was given to SendPayload. True: the peer never sees it.
  bool AbortPayload(uint32_t call_id);
  // A call whose response may have `bytes` (of a zone) is about to be sent. A zone to ride in its
  // request, if the peer needs one more and it can be granted at once.
  std::optional<ZoneGrant> ExpectResponse(uint64_t bytes);
  // That zone never reached the peer.
  void TakeBack(const ZoneGrant& zone);
  // That call has ended, however.
  void EndExpected(uint64_t bytes);
  // The peer has given up a call: its message waits for no zone, and if it has just landed nobody
  // wants it.
  void DropIncoming(uint32_t call_id);
  // Buffers have been let go of: zones may be granted again at once.
  void RegrantZones();
  // Of this connection. All zero before its first such message.
  PayloadCounters payload_counters() const;
  // Time passes: what waits too long, what is idle. 0: nothing to tend, else call again so soon.
  int64_t Tend(int64_t now_ns);
  // More was posted than one step may take, and can be continued at once.
  bool WantsService() const { return payload_ != nullptr && payload_->sender.CanProgress(); }

  // ---- The peer that may have vanished ----

  // 0: not to be looked at.
  int64_t look_interval_ns() const { return watch_.look_interval_ns(); }
  // Asks a silent peer whether it is there. True: it has not answered for too long. Then call
  // ServiceIdle once nothing is left to poll, since the answer may be waiting for this very thread;
  // it fails the endpoint or drops the suspicion.
  bool LookAtPeer(int64_t now_ns);
  // Whether that is how it ended.
  bool peer_lost() const { return peer_lost_; }

  // ---- Receiving ----

  void OnCompletion(const WorkCompletion& completion);
  // The slot is posted again by a later Service() or ServiceIdle().
  void ReleaseReceive(uint32_t slot);
  // Lends the slot to readers: it is released when the last Buffer that refers to it is gone, on any
  // thread, and keeps its memory beyond the endpoint's life. The handler says kKept. All of the
  // slot's first `bytes`; empty when too many are lent, and the slot is the handler's still.
  Buffer LendReceive(uint32_t slot, size_t bytes) { return ring_->Lend(slot, bytes); }
  // For the handler: the frame just given is against the protocol. Closes and tells the peer.
  void FailProtocol(FrameDefect defect);

  // ---- The end ----

  // Sends a close frame, and fails once it is out (or can't be sent).
  void Close();
  // A close frame is on its way: hardware would throw it away if the endpoint failed now.
  bool is_closing() const { return state_ == State::kClosing; }
  // The connection is of no use any more: the connection manager says that the peer is gone, or a
  // post was refused. What the peer sent before is still delivered; the first flushed completion
  // then fails the endpoint with `why`. Calls no handler before it returns.
  void Break(const absl::Status& why);
  // Moves the queue pair to error; OnClosed(why) unless that was called already. Idempotent.
  void Fail(const absl::Status& why);
  // No more calls to the handler.
  void Detach() { handler_ = nullptr; }
  // Every work request has completed. Only after Fail.
  bool drained() const {
    return state_ == State::kDraining && receives_posted_ == 0 && drain_marker_done_;
  }

  // Set by the poller. Whether it will call Service() soon; and whether there are more completions
  // to handle before that, so that frames had better wait for each other and go with one doorbell.
  bool service_pending = false;
  bool goes_on = false;  // In the next step, because of WantsService().
  bool idle_service_pending = false;
  bool batching = false;

 private:
  enum class State { kConnecting, kOpen, kClosing, kDraining };

  Endpoint(const EndpointOptions& options, EndpointId id, EndpointHost& host, Handler* handler);
  absl::Status Allocate(Device& device, CompletionQueue& queue);
  absl::Status PostRing();

  size_t Stride() const { return size_t{options_.slot_bytes} + kSlotColourBytes; }
  uint32_t SendQueueFree() const { return send_depth_ - (sends_posted_ - sends_retired_); }
  bool SendSlotFree() const { return slots_used_ - slots_retired_ < send_slots_; }
  // ReceiveRing::Owner.
  void TakeBackSlot(uint32_t slot) override { ReleaseReceive(slot); }
  // PayloadPort.
  bool CanPost(bool credit) const override;
  uint32_t Post(SendWorkRequest& request, bool credit) override;
  void SendNote(FrameKind kind, uint32_t call_id, const void* frame, size_t bytes) override;
  void OnDefect(FrameDefect defect) override {
    if (state_ == State::kOpen) FailProtocol(defect);
  }
  void MakeInBackground(uint32_t size_class) override;
  void RegisterInBackground(const Buffer& buffer) override;

  PayloadPath& payload();
  FrameDefect OnZoneFrame(std::span<const std::byte> frame);
  FrameDefect OnWantZone(const WantZoneHeader& want);
  // A zone that rides in a request.
  FrameDefect TakeReplyZone(std::span<const std::byte> frame, bool landed);
  void OnImmediate(uint32_t slot, uint32_t immediate);
  bool TrySendNote(FrameKind kind, uint32_t call_id, const void* frame, size_t bytes);
  void FlushNotes();
  void ServicePayload();
  void TellPayloadEvents();

  // `bytes`: of the part that is filled in place; `tail_bytes`: of what follows it.
  std::byte* ReservePart(size_t bytes, size_t tail_bytes, CreditClass credit_class);
  void CommitPart(const Buffer* tail, FrameKind kind, uint32_t call_id, uint8_t flags);
  void DropTails(uint32_t slots_retired);
  void PostPending();
  void PostReleased();
  // Frames may come before Open: what they return is reported after it.
  bool GrantDue() const { return state_ == State::kOpen && credits_.GrantDue(); }
  void SendGrant();
  // Whether this side may send at all yet (Capabilities::connecting_side_sends_first).
  bool MaySend() const { return !peer_speaks_first_ || heard_ != 0; }
  void PostProbe();
  void JudgePeer();
  void OnReceive(uint32_t slot, uint32_t bytes);
  void OnSent(WorkRequestId id);
  void OnSentWhileClosing(bool probe);
  void OnClose(const CloseHeader& close);
  // What flushes before the connection is there was refused or lost on the way. Why is the
  // connection manager's to say, whose event comes, too.
  bool MayEndByItself() const { return state_ != State::kConnecting || !close_reason_.ok(); }
  void OnErrorCompletion(const WorkCompletion& completion);
  bool SendClose(CloseHeader::Reason reason, uint32_t detail);
  void NotifyClosed(const absl::Status& why);

  // Constant after construction.
  const EndpointOptions options_;
  const EndpointId id_;
  const uint32_t send_depth_;  // Work requests that we allow ourselves in the send queue.
  const uint32_t send_slots_;
  const uint32_t signal_interval_;  // One send in so many makes a completion.
  const uint32_t repost_batch_;     // Receives posted with one call.
  uint32_t inline_bytes_max_ = 0;
  Opcode probe_opcode_ = Opcode::kWrite;
  RemoteTarget peer_probe_;
  bool success_is_answer_ = false;  // Capabilities::error_tells_sender.
  bool connecting_side_sends_first_ = false;

  EndpointHost& host_;
  const Capabilities* capabilities_ = nullptr;
  std::shared_ptr<const void> device_owner_;

  // Order matters: regions and windows go after the queue pair that uses them, the domain last.
  std::shared_ptr<ProtectionDomain> domain_;
  std::shared_ptr<ConnectionMemory> memory_;
  ReceiveRing::Pointer ring_;
  std::unique_ptr<std::byte, void (*)(void*)> send_memory_;
  std::unique_ptr<MemoryRegion> send_region_;
  std::unique_ptr<MemoryRegion> probe_region_;  // Null: probes read nothing.
  std::unique_ptr<PayloadPath> payload_;        // Null: never needed so far.
  std::unique_ptr<QueuePair> queue_pair_;

  Handler* handler_;
  State state_ = State::kConnecting;
  bool closed_told_ = false;
  bool want_writable_ = false;
  size_t frame_bytes_max_ = 0;
  size_t slot_frame_bytes_max_ = 0;
  CreditAccount credits_{0, 1};

  // What only a peer that is there can have brought about: receives, answered probes and, where the
  // device tells, completed sends. Counted since the beginning.
  uint64_t heard_ = 0;
  PeerWatch watch_;
  bool peer_speaks_first_ = false;
  bool probe_outstanding_ = false;  // At most one, which has a place of its own in the send queue.
  bool peer_lost_ = false;

  // Sends, counted since the beginning; differences are what is outstanding.
  uint32_t sends_posted_ = 0;      // Committed, so pending ones too.
  uint32_t sends_retired_ = 0;     // Known complete, by the last signalled completion.
  uint32_t sends_unsignaled_ = 0;  // Since the last signalled one.
  uint32_t slots_used_ = 0;        // Sends that hold one of the send slots (not inline).
  uint32_t slots_retired_ = 0;
  uint32_t slots_unsignaled_ = 0;

  // The frame between Reserve and Commit.
  std::byte* reserved_ = nullptr;
  uint32_t reserved_bytes_ = 0;
  bool reserved_inline_ = false;

  // Committed, not yet posted. Inline frames live in inline_slots_ at the same index.
  uint32_t pending_ = 0;
  std::array<SendWorkRequest, kPostBatchBound> send_requests_;
  // Of each request: what was filled in place, and its tail.
  std::array<std::array<ScatterGatherEntry, 2>, kPostBatchBound> send_entries_;
  struct alignas(64) InlineSlot {
    std::array<std::byte, 256> bytes;
  };
  std::array<InlineSlot, kPostBatchBound> inline_slots_;

  // Tails that the device may still read: by the send slot of their frame; and of inline frames
  // until they are posted.
  std::vector<Buffer> slot_tails_;
  uint32_t slot_tails_held_ = 0;
  std::vector<Buffer> pending_tails_;

  // Frames of the payload path that found no room. In order.
  struct Note {
    FrameKind kind;
    uint32_t call_id;
    uint32_t bytes;
    std::array<std::byte, sizeof(ZoneHeader)> frame;
  };
  std::vector<Note> notes_;

  // Receives to be posted again, and how each slot is posted.
  std::vector<RecvWorkRequest> released_;
  std::vector<ScatterGatherEntry> receive_entries_;
  uint32_t receives_posted_ = 0;
  bool drain_marker_done_ = false;
  absl::Status close_reason_;  // Not OK: what Fail will say when the queue pair flushes.
};

}  // namespace verbena
