// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/endpoint.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace verbena {
namespace {

// One completion for so many sends. Large enough that completions cost nothing, small enough that
// the send queue never fills while one is on its way.
constexpr uint32_t kSignalIntervalMax = 32;
// Receives posted with one call. More save doorbells, but the call is made between two messages,
// and with 16 it was long enough to delay one in sixteen: the 99th percentile. Four fit the gap.
constexpr uint32_t kRepostBatchMax = 4;
// Work requests in the send queue beside the frames.
constexpr uint32_t kDrainMarkers = 1;
constexpr uint32_t kProbes = 1;
// What a READ that is a probe reads: the first bytes of the peer's probe memory, into those behind
// them of ours.
constexpr uint32_t kProbeBytes = 8;

// A probe is an operation that succeeds only when the peer's NIC answered, and that the peer's
// process knows nothing of: no receive, no credit. A WRITE of no bytes is the cheapest, and its key
// is not checked (InfiniBand specification vol. 1, C9-88); where its success says nothing of the
// peer only a READ will do. That one is of eight bytes, because Soft-iWARP takes the length of an
// empty READ from what it happens to send.
Opcode ProbeOpcode(const Capabilities& can) {
  return can.error_tells_sender ? Opcode::kWrite : Opcode::kRead;
}

}  // namespace

Endpoint::Endpoint(const EndpointOptions& options, EndpointId id, EndpointHost& host,
                   Handler* handler)
    : options_(options),
      id_(id),
      send_depth_(options.ring_depth),
      send_slots_(options.send_slots()),
      signal_interval_(std::min(kSignalIntervalMax, options.ring_depth / 4)),
      repost_batch_(std::min(kRepostBatchMax, options.ring_depth / 8)),
      host_(host),
      send_memory_(nullptr, &std::free),
      handler_(handler),
      watch_(options.detection_time) {}

Endpoint::~Endpoint() {
  if (payload_ != nullptr) payload_->receiver.DropWindows();
  if (memory_ != nullptr) memory_->Close();
}

size_t Endpoint::MemoryBytes(const EndpointOptions& options) {
  const size_t stride = size_t{options.slot_bytes} + kSlotColourBytes;
  return options.ring_depth * stride      // receive slots
         + options.send_slots() * stride  // send slots
         + options.ring_depth * (sizeof(ScatterGatherEntry) + sizeof(RecvWorkRequest)) +
         (options.send_slots() + kPostBatchBound) * sizeof(Buffer) + sizeof(ReceiveRing) +
         sizeof(ConnectionMemory) + sizeof(Endpoint);
}

uint32_t Endpoint::CompletionsMax(const EndpointOptions& options) {
  return options.ring_depth    // receives
         + options.ring_depth  // sends
         + kDrainMarkers + kProbes;
}

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Create(
    Device& device, std::shared_ptr<const void> device_owner, CompletionQueue& queue,
    const EndpointOptions& options, EndpointId id, EndpointHost& host, Handler* handler) {
  if (absl::Status status = options.Validate(); !status.ok()) return status;
  std::unique_ptr<Endpoint> endpoint(new Endpoint(options, id, host, handler));
  endpoint->device_owner_ = std::move(device_owner);
  if (absl::Status status = endpoint->Allocate(device, queue); !status.ok()) return status;
  if (absl::Status status = endpoint->PostRing(); !status.ok()) return status;
  return endpoint;
}

absl::Status Endpoint::Allocate(Device& device, CompletionQueue& queue) {
  auto domain = device.AllocateProtectionDomain();
  if (!domain.ok()) return domain.status();
  domain_ = *std::move(domain);
  capabilities_ = &device.capabilities();

  // The device writes into the receive slots, so they are memory of its liking. Relaxed ordering: a
  // slot is read only after its completion, so within it the NIC may write as PCI Express likes.
  auto receive_memory = domain_->AllocateMemory(options_.ring_depth * Stride(),
                                                kAccessLocalWrite | kAccessRelaxedOrdering);
  if (!receive_memory.ok()) return receive_memory.status();
  memory_ = std::make_shared<ConnectionMemory>(ConnectionMemoryOptions{
      .domain = domain_,
      .owner = device_owner_,
      .process_budget =
          options_.process_budget != nullptr ? options_.process_budget : MemoryBudget::OfProcess(),
      .connection_bytes_max = options_.payload_bytes_max,
      .memory_windows = capabilities_->memory_windows});
  ring_ = ReceiveRing::Create({.depth = options_.ring_depth,
                               .stride = Stride(),
                               .device_owner = device_owner_,
                               .domain = domain_,
                               .domain_id = memory_->domain_id()},
                              *std::move(receive_memory), host_, *this);

  // It only reads the send slots: private memory, which the peer has no way to see.
  const size_t send_bytes = send_slots_ * Stride();
  send_memory_.reset(
      static_cast<std::byte*>(std::aligned_alloc(4096, (send_bytes + 4095) & ~4095)));
  if (send_memory_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", send_bytes, " bytes of send slots"));
  }
  auto send_region = domain_->RegisterMemory(send_memory_.get(), send_bytes, kAccessLocalRead);
  if (!send_region.ok()) return send_region.status();
  send_region_ = *std::move(send_region);

  QueuePairOptions pair_options;
  pair_options.send_queue = &queue;
  pair_options.recv_queue = &queue;
  pair_options.send_depth = send_depth_ + kDrainMarkers + kProbes;
  pair_options.recv_depth = options_.ring_depth;
  pair_options.send_sge_max = 2;  // What is filled in place, and a tail.
  pair_options.recv_sge_max = 1;
  inline_bytes_max_ =
      std::min<uint32_t>(device.capabilities().inline_bytes_max, sizeof(InlineSlot::bytes));
  pair_options.inline_bytes_max = inline_bytes_max_;
  probe_opcode_ = ProbeOpcode(device.capabilities());
  success_is_answer_ = device.capabilities().error_tells_sender;
  connecting_side_sends_first_ = device.capabilities().connecting_side_sends_first;
  if (probe_opcode_ == Opcode::kRead) {
    auto probe = domain_->AllocateMemory(2 * kProbeBytes, kAccessLocalWrite | kAccessRemoteRead);
    if (!probe.ok()) return probe.status();
    probe_region_ = *std::move(probe);
  }
  auto queue_pair = domain_->CreateQueuePair(pair_options);
  if (!queue_pair.ok()) return queue_pair.status();
  queue_pair_ = *std::move(queue_pair);
  slot_tails_.resize(send_slots_);
  pending_tails_.reserve(kPostBatchBound);
  return absl::OkStatus();
}

absl::Status Endpoint::PostRing() {
  receive_entries_.resize(options_.ring_depth);
  released_.reserve(options_.ring_depth);
  for (uint32_t slot = 0; slot < options_.ring_depth; ++slot) {
    receive_entries_[slot] = {reinterpret_cast<uint64_t>(ring_->Slot(slot)), options_.slot_bytes,
                              ring_->local_key()};
    released_.push_back({WorkRequestId::Receive(id_, slot).value(), {&receive_entries_[slot], 1}});
  }
  absl::Status status = queue_pair_->PostRecv(released_);
  if (!status.ok()) return status;
  receives_posted_ = options_.ring_depth;
  released_.clear();
  return absl::OkStatus();
}

ConnectOptions Endpoint::MakeConnectOptions(uint64_t epoch) const {
  Hello hello;
  hello.ring_depth = options_.ring_depth;
  hello.slot_bytes = options_.slot_bytes;
  hello.epoch = epoch;
  if (probe_region_ != nullptr) {
    hello.probe_address = probe_region_->address();
    hello.probe_key = probe_region_->remote_key().value;
  }
  ConnectOptions connect;
  connect.private_data = EncodeHello(hello);
  if (options_.detection_time > std::chrono::milliseconds::zero()) {
    // Those of Soft-RoCE, which repeats for ever then, end when the watch says so.
    connect.retries = 7;
    connect.acknowledgement_timeout = AcknowledgementTimeout(options_.detection_time);
  }
  return connect;
}

void Endpoint::Open(const Hello& peer, Side side) {
  DCHECK(state_ == State::kConnecting);
  const uint32_t reposted = credits_.unreported();  // Frames may have come before the event.
  credits_ = CreditAccount(peer.ring_depth, options_.ring_depth);
  credits_.Reposted(reposted);
  frame_bytes_max_ = std::min(options_.slot_bytes, peer.slot_bytes);
  slot_frame_bytes_max_ = frame_bytes_max_;
  if (options_.slot_frame_bytes_max != 0) {
    slot_frame_bytes_max_ = std::min<size_t>(frame_bytes_max_, options_.slot_frame_bytes_max);
  }
  peer_probe_ = {peer.probe_address, RemoteKey{peer.probe_key}};
  state_ = State::kOpen;
  if (!connecting_side_sends_first_) return;
  if (side == Side::kConnecting) {
    SendGrant();  // Of nothing: it sets the other side's tongue free.
  } else {
    peer_speaks_first_ = true;
    watch_.ExpectFirstWord();
  }
}

// ---- Sending ----

std::byte* Endpoint::Reserve(size_t bytes, CreditClass credit_class) {
  return ReservePart(bytes, 0, credit_class);
}

std::byte* Endpoint::ReserveBefore(const Buffer& tail, size_t bytes) {
  DCHECK(CanSendFrom(tail, bytes));
  return ReservePart(bytes, tail.size(), CreditClass::kData);
}

inline std::byte* Endpoint::ReservePart(size_t bytes, size_t tail_bytes, CreditClass credit_class) {
  DCHECK(reserved_ == nullptr) << "Reserve without Commit";
  DCHECK_GE(bytes, sizeof(FrameHeader));
  DCHECK_LE(bytes + tail_bytes, frame_bytes_max_);
  if (state_ != State::kOpen || !credits_.CanSpend(credit_class) || SendQueueFree() == 0) {
    return nullptr;
  }
  if (pending_ == options_.post_batch_max) PostPending();
  reserved_inline_ = bytes + tail_bytes <= inline_bytes_max_;
  if (reserved_inline_) {
    reserved_ = inline_slots_[pending_].bytes.data();
  } else {
    if (!SendSlotFree()) return nullptr;
    reserved_ = send_memory_.get() + (slots_used_ % send_slots_) * Stride();
  }
  reserved_bytes_ = static_cast<uint32_t>(bytes);
  return reserved_;
}

void Endpoint::Commit(FrameKind kind, uint32_t call_id, uint8_t flags) {
  CommitPart(nullptr, kind, call_id, flags);
}

void Endpoint::CommitBefore(const Buffer& tail, FrameKind kind, uint32_t call_id, uint8_t flags) {
  if (!reserved_inline_) {
    slot_tails_[slots_used_ % send_slots_] = tail;
    ++slot_tails_held_;
  } else if (batching) {
    pending_tails_.push_back(tail);
  }
  CommitPart(&tail, kind, call_id, flags);
}

inline void Endpoint::CommitPart(const Buffer* tail, FrameKind kind, uint32_t call_id,
                                 uint8_t flags) {
  DCHECK(reserved_ != nullptr) << "Commit without Reserve";
  WriteFrameHeader(reserved_, kind, flags, credits_.TakeUnreported(), call_id);
  credits_.Spend();

  ++sends_posted_;
  ++sends_unsignaled_;
  if (!reserved_inline_) {
    ++slots_used_;
    ++slots_unsignaled_;
  }
  SendFlags send_flags = reserved_inline_ ? kSendInline : 0;
  // Half of the slots: the other half keeps the sender going until the completion is polled.
  if (sends_unsignaled_ >= signal_interval_ || slots_unsignaled_ * 2 >= send_slots_) {
    send_flags |= kSendSignaled;
    sends_unsignaled_ = 0;
    slots_unsignaled_ = 0;
  }

  SendWorkRequest& request = send_requests_[pending_];
  std::array<ScatterGatherEntry, 2>& entries = send_entries_[pending_];
  entries[0] = {reinterpret_cast<uint64_t>(reserved_), reserved_bytes_, send_region_->local_key()};
  size_t entry_count = 1;
  if (tail != nullptr) {
    entries[1] = {reinterpret_cast<uint64_t>(tail->data()), static_cast<uint32_t>(tail->size()),
                  reserved_inline_ ? LocalKey{} : tail->block()->region->local_key()};
    entry_count = 2;
  }
  request.sg_list = {entries.data(), entry_count};
  request.flags = send_flags;
  request.wr_id = WorkRequestId::Send(id_, sends_posted_, slots_used_).value();
  ++pending_;
  reserved_ = nullptr;
  if (!batching) PostPending();
}

void Endpoint::PostPending() {
  const uint32_t count = pending_;
  pending_ = 0;
  absl::Status status = queue_pair_->PostSend({send_requests_.data(), count});
  if (!pending_tails_.empty()) pending_tails_.clear();
  if (!status.ok()) Break(status);
}

// Of the frames whose slots are free again: those up to this count.
void Endpoint::DropTails(uint32_t slots_retired) {
  for (uint32_t slot = slots_retired_; slot != slots_retired; ++slot) {
    Buffer& tail = slot_tails_[slot % send_slots_];
    if (tail.block() == nullptr) continue;
    tail = Buffer();
    --slot_tails_held_;
  }
}

void Endpoint::Service() {
  if (state_ == State::kDraining) return;
  if (ring_->HasReturned()) [[unlikely]]
    ring_->CollectReturned();
  if (payload_ != nullptr) ServicePayload();
  if (want_writable_ && CanSend()) {
    want_writable_ = false;
    if (handler_ != nullptr) handler_->OnWritable();
  }
  batching = false;
  if (pending_ != 0) PostPending();
  // Nobody waits for the receives yet: that is for idle moments, if there are any.
  if (released_.size() >= 2 * repost_batch_) PostReleased();
  if (GrantDue()) SendGrant();
  // Broken while the layer above keeps every receive: nothing is left to flush, and so to tell.
  if (receives_posted_ == 0 && MayEndByItself() && queue_pair_->state() == QueuePairState::kError)
      [[unlikely]] {
    Fail(close_reason_.ok() ? absl::UnavailableError("the connection broke") : close_reason_);
  }
}

void Endpoint::ServiceIdle() {
  if (watch_.suspected()) [[unlikely]]
    JudgePeer();
  if (released_.size() < repost_batch_ || state_ == State::kDraining) return;
  PostReleased();
  if (GrantDue()) SendGrant();
}

void Endpoint::SendGrant() {
  std::byte* memory = Reserve(sizeof(FrameHeader), CreditClass::kGrant);
  if (memory == nullptr) return;  // Due still; the next Service tries again.
  Commit(FrameKind::kGrant, /*call_id=*/0);
}

// ---- The peer that may have vanished ----

bool Endpoint::LookAtPeer(int64_t now_ns) {
  if (state_ != State::kOpen || !watch_.enabled()) return false;
  const auto awaited = [this] {
    return want_writable_ || (payload_ != nullptr && payload_->sender.in_flight() != 0) ||
           (handler_ != nullptr && handler_->AwaitsPeer());
  };
  const PeerWatch::Verdict verdict = watch_.Look(now_ns, heard_, awaited);
  if (verdict == PeerWatch::Verdict::kAsk && MaySend()) PostProbe();
  return verdict == PeerWatch::Verdict::kSuspect;
}

void Endpoint::PostProbe() {
  // One from before something else was heard is as good a question.
  if (probe_outstanding_) return;
  if (pending_ != 0) PostPending();  // The probe's id says that all sends so far are before it.
  SendWorkRequest probe;
  probe.wr_id = WorkRequestId::Probe(id_, sends_posted_, slots_used_).value();
  probe.opcode = probe_opcode_;
  probe.flags = kSendSignaled;
  ScatterGatherEntry entry;
  if (probe_region_ != nullptr && peer_probe_.address != 0) {
    entry = {probe_region_->address() + kProbeBytes, kProbeBytes, probe_region_->local_key()};
    probe.sg_list = {&entry, 1};
    probe.remote = peer_probe_;
  }
  if (absl::Status status = queue_pair_->PostSend({&probe, 1}); !status.ok()) {
    Break(status);
    return;
  }
  probe_outstanding_ = true;
}

void Endpoint::JudgePeer() {
  if (!watch_.IsLost(heard_) || state_ != State::kOpen) return;
  peer_lost_ = true;
  Fail(absl::UnavailableError(absl::StrCat(
      "the peer did not answer for ", watch_.silent_ns() / 1'000'000,
      " ms and is taken for gone (EndpointOptions::detection_time is ",
      options_.detection_time.count(),
      " ms): see whether its host runs and can be reached; raise detection_time if the network "
      "may pause for so long")));
}

// ---- Receiving ----

void Endpoint::OnCompletion(const WorkCompletion& completion) {
  const WorkRequestId id(completion.wr_id);
  if (!id.is_send()) --receives_posted_;
  if (completion.status != CompletionStatus::kSuccess) {
    OnErrorCompletion(completion);
  } else if (id.is_send()) {
    OnSent(id);
  } else {
    ++heard_;
    if (completion.opcode == CompletionOpcode::kRecvWriteWithImm) [[unlikely]] {
      OnImmediate(id.slot(), completion.imm_data);
    } else {
      OnReceive(id.slot(), completion.byte_length);
    }
  }
}

void Endpoint::OnSent(WorkRequestId id) {
  sends_retired_ = id.SendCount(sends_retired_);
  const uint32_t slots_retired = id.SlotCount(slots_retired_);
  if (slot_tails_held_ != 0) DropTails(slots_retired);
  slots_retired_ = slots_retired;
  if (id.is_probe()) probe_outstanding_ = false;
  if (payload_ != nullptr) {
    payload_->sender.OnRetired(sends_retired_);
    payload_->receiver.OnRetired(sends_retired_);
  }
  if (success_is_answer_ || id.is_probe()) ++heard_;
  if (state_ == State::kClosing) OnSentWhileClosing(id.is_probe());
}

void Endpoint::OnSentWhileClosing(bool probe) {
  if (sends_retired_ != sends_posted_) return;
  if (success_is_answer_ || probe) {
    Fail(close_reason_);
  } else {
    PostProbe();  // Its answer says that the close frame has arrived.
  }
}

void Endpoint::OnReceive(uint32_t slot, uint32_t bytes) {
  // After a protocol error nothing that the peer says counts, and one complaint is enough.
  if (state_ == State::kDraining || closed_told_) return;
  const std::span<const std::byte> frame(ring_->Slot(slot), bytes);
  if (FrameDefect defect = ValidateFrame(frame); defect != FrameDefect::kNone) [[unlikely]] {
    FailProtocol(defect);
    return;
  }
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
  if (!credits_.Return(header.credits)) [[unlikely]] {
    FailProtocol(FrameDefect::kTooManyCredits);
    return;
  }
  switch (header.kind) {
    case FrameKind::kRequest:
      if (header.flags != 0) [[unlikely]] {
        if (FrameDefect defect = TakeReplyZone(frame, /*landed=*/false);
            defect != FrameDefect::kNone) {
          FailProtocol(defect);
          return;
        }
      }
      [[fallthrough]];
    case FrameKind::kResponse:
    case FrameKind::kCancel:
      if (payload_ != nullptr) payload_->sender.OnFrame();
      if (handler_ != nullptr && handler_->OnFrame(slot, frame) == Disposition::kKept) {
        return;
      }
      break;
    case FrameKind::kGrant:
      break;
    case FrameKind::kZone:
    case FrameKind::kWantZone:
    case FrameKind::kRecallZone:
    case FrameKind::kReturnZone:
    case FrameKind::kLanded:
      if (const FrameDefect defect = OnZoneFrame(frame); defect != FrameDefect::kNone) {
        FailProtocol(defect);
        return;
      }
      break;
    case FrameKind::kClose:
      OnClose(*reinterpret_cast<const CloseHeader*>(frame.data()));
      return;
  }
  if (state_ != State::kDraining) ReleaseReceive(slot);
}

void Endpoint::ReleaseReceive(uint32_t slot) {
  released_.push_back({WorkRequestId::Receive(id_, slot).value(), {&receive_entries_[slot], 1}});
}

void Endpoint::PostReleased() {
  if (state_ == State::kDraining) return;
  const auto count = static_cast<uint32_t>(released_.size());
  absl::Status status = queue_pair_->PostRecv(released_);
  released_.clear();
  if (!status.ok()) {
    Break(status);
    return;
  }
  receives_posted_ += count;
  credits_.Reposted(count);
}

// ---- The end ----

void Endpoint::OnClose(const CloseHeader& close) {
  if (close.reason == CloseHeader::Reason::kProtocolError) {
    const std::string_view defect = FrameDefectName(static_cast<FrameDefect>(close.detail));
    Fail(absl::InternalError(
        absl::StrCat("the peer closed the connection for a protocol error of this side: ",
                     absl::string_view(defect.data(), defect.size()))));
    return;
  }
  Fail(absl::UnavailableError("the peer closed the connection"));
}

void Endpoint::OnErrorCompletion(const WorkCompletion& completion) {
  const WorkRequestId id(completion.wr_id);
  if (state_ == State::kDraining) {
    if (id.is_send() && id.SendCount(sends_retired_) == sends_posted_) drain_marker_done_ = true;
    return;
  }
  if (!close_reason_.ok()) {
    Fail(close_reason_);
    return;
  }
  if (!MayEndByItself()) return;
  const std::string_view name = CompletionStatusName(completion.status);
  Fail(absl::UnavailableError(
      absl::StrCat("the connection broke: ", absl::string_view(name.data(), name.size()))));
}

void Endpoint::Break(const absl::Status& why) {
  if (state_ == State::kDraining) return;
  if (close_reason_.ok()) close_reason_ = why;
  queue_pair_->MoveToError();
}

void Endpoint::FailProtocol(FrameDefect defect) {
  const std::string_view name = FrameDefectName(defect);
  close_reason_ = absl::InternalError(
      absl::StrCat("the peer broke the protocol: ", absl::string_view(name.data(), name.size())));
  LOG(WARNING) << "closing a connection: " << close_reason_.message();
  if (state_ == State::kOpen &&
      SendClose(CloseHeader::Reason::kProtocolError, static_cast<uint32_t>(defect))) {
    NotifyClosed(close_reason_);
    return;
  }
  Fail(close_reason_);
}

void Endpoint::Close() {
  if (state_ == State::kClosing) return;
  close_reason_ = absl::UnavailableError("this side closed the connection");
  if (state_ != State::kOpen || !SendClose(CloseHeader::Reason::kGoingAway, 0)) {
    Fail(close_reason_);
  }
}

// False when it can't be sent now; then the queue pair's end has to tell the peer.
bool Endpoint::SendClose(CloseHeader::Reason reason, uint32_t detail) {
  if (!MaySend()) return false;
  std::byte* memory = Reserve(sizeof(CloseHeader), CreditClass::kClose);
  if (memory == nullptr) return false;
  WriteCloseFields(memory, reason, detail);
  sends_unsignaled_ = signal_interval_;  // Signalled: its completion ends kClosing.
  state_ = State::kClosing;
  batching = false;
  Commit(FrameKind::kClose, /*call_id=*/0);
  return true;
}

void Endpoint::Fail(const absl::Status& why) {
  if (state_ == State::kDraining) return;
  state_ = State::kDraining;
  reserved_ = nullptr;
  sends_posted_ -= pending_;  // Never posted.
  pending_ = 0;
  queue_pair_->MoveToError();
  // Whatever is outstanding flushes in order, so when this one has, all have (the usual way to
  // drain: the marker is the last send).
  ++sends_posted_;
  SendWorkRequest marker;
  marker.flags = kSendSignaled;
  marker.wr_id = WorkRequestId::Send(id_, sends_posted_, slots_used_).value();
  if (!queue_pair_->PostSend({&marker, 1}).ok()) drain_marker_done_ = true;
  NotifyClosed(why);
}

void Endpoint::NotifyClosed(const absl::Status& why) {
  if (closed_told_) return;
  closed_told_ = true;
  if (handler_ != nullptr) handler_->OnClosed(why);
}

}  // namespace verbena
