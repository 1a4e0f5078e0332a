// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/queue_pair.h"

#include <arpa/inet.h>
#include <errno.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/rdma/completion_queue.h"
#include "verbena/transport/rdma/connection_manager_impl.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/protection_domain.h"
#include "verbena/transport/rdma/shared_receive_queue.h"

namespace verbena::rdma {
namespace {

absl::Status OverLimit(std::string_view option, uint32_t value, std::string_view limit,
                       uint32_t bound) {
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(option.data(), option.size()), " is ", value, ": it must be at most ",
      absl::string_view(limit.data(), limit.size()), ", ", bound));
}

absl::Status CheckOptions(const QueuePairOptions& options, const Capabilities& can) {
  if (options.send_queue == nullptr || options.recv_queue == nullptr) {
    return absl::InvalidArgumentError(
        options.send_queue == nullptr ? "send_queue is null" : "recv_queue is null");
  }
  if (options.send_sge_max > can.send_sge_max) {
    return OverLimit("send_sge_max", options.send_sge_max, "send_sge_max", can.send_sge_max);
  }
  if (options.recv_sge_max > can.recv_sge_max) {
    return OverLimit("recv_sge_max", options.recv_sge_max, "recv_sge_max", can.recv_sge_max);
  }
  if (options.inline_bytes_max > can.inline_bytes_max) {
    return OverLimit("inline_bytes_max", options.inline_bytes_max, "inline_bytes_max",
                     can.inline_bytes_max);
  }
  if (options.send_depth > can.queue_depth_max) {
    return OverLimit("send_depth", options.send_depth, "queue_depth_max", can.queue_depth_max);
  }
  if (options.shared_receive == nullptr && options.recv_depth > can.queue_depth_max) {
    return OverLimit("recv_depth", options.recv_depth, "queue_depth_max", can.queue_depth_max);
  }
  return absl::OkStatus();
}

}  // namespace

OutstandingRequests::OutstandingRequests(uint32_t depth)
    : depth_(depth), mask_(std::bit_ceil(std::max(depth, 1u)) - 1), requests_(mask_ + 1) {}

// ---- Creation ----

RdmaQueuePair::RdmaQueuePair(RdmaProtectionDomain* domain, const QueuePairOptions& options)
    : domain_(domain),
      device_(domain->device()),
      options_(options),
      send_queue_(static_cast<RdmaCompletionQueue*>(options.send_queue)),
      recv_queue_(static_cast<RdmaCompletionQueue*>(options.recv_queue)),
      shared_(static_cast<RdmaSharedReceiveQueue*>(options.shared_receive)),
      sends_(options.send_depth),
      recvs_(options.recv_depth) {}

absl::StatusOr<std::unique_ptr<RdmaQueuePair>> RdmaQueuePair::Create(
    RdmaProtectionDomain* domain, const QueuePairOptions& options) {
  if (absl::Status s = CheckOptions(options, domain->device()->capabilities()); !s.ok()) return s;
  std::unique_ptr<RdmaQueuePair> self(new RdmaQueuePair(domain, options));
  if (absl::Status status = self->Reserve(); !status.ok()) return status;
  if (absl::Status status = self->CreateHardware(); !status.ok()) return status;
  if (absl::Status status = self->MoveToInit(); !status.ok()) return status;
  return self;
}

absl::Status RdmaQueuePair::Reserve() {
  if (absl::Status status = device_->CountPair(); !status.ok()) return status;
  counted_ = true;
  absl::Status status = send_queue_->Reserve(options_.send_depth, "send_depth");
  if (!status.ok()) return status;
  reserved_send_ = options_.send_depth;
  // Of a shared queue any pair may get all receives.
  const uint32_t receives = shared_ != nullptr ? shared_->depth() : options_.recv_depth;
  status = recv_queue_->Reserve(receives, "recv_depth");
  if (!status.ok()) return status;
  reserved_recv_ = receives;
  return absl::OkStatus();
}

absl::Status RdmaQueuePair::CreateHardware() {
  ibv_qp_init_attr attributes{};
  attributes.qp_context = this;
  attributes.send_cq = send_queue_->handle();
  attributes.recv_cq = recv_queue_->handle();
  attributes.srq = shared_ != nullptr ? shared_->handle() : nullptr;
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = options_.signal_all ? 1 : 0;
  // Soft-iWARP makes no queue of depth 0. Our account takes nothing in.
  attributes.cap.max_send_wr = std::max(options_.send_depth, 1u);
  attributes.cap.max_recv_wr = shared_ != nullptr ? 0 : std::max(options_.recv_depth, 1u);
  attributes.cap.max_send_sge = std::max(options_.send_sge_max, 1u);
  attributes.cap.max_recv_sge = std::max(options_.recv_sge_max, 1u);
  attributes.cap.max_inline_data = options_.inline_bytes_max;
  errno = 0;
  pair_.reset(ibv_create_qp(domain_->handle(), &attributes));
  if (pair_ == nullptr) return CreationError("ibv_create_qp", errno);
  receiver_not_ready_before_ = device_->ReceiverNotReadyCount();
  send_place_ = send_queue_->Attach(this);
  recv_place_ = recv_queue_->Attach(this);
  recv_place_.kind = WorkId::Kind::kRecv;
  attached_ = true;
  device_->AddPair(number(), this);
  return absl::OkStatus();
}

// The port may change when the route is known; receives may be posted from here on.
absl::Status RdmaQueuePair::MoveToInit() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device_->default_port();
  attributes.pkey_index = 0;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (device_->capabilities().atomics) attributes.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
  const int mask = device_->is_iwarp() ? IBV_QP_STATE | IBV_QP_ACCESS_FLAGS
                                       : IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                             IBV_QP_ACCESS_FLAGS;
  if (absl::Status status = Modify(attributes, mask); !status.ok()) return status;
  set_state(QueuePairState::kInit);
  return absl::OkStatus();
}

RdmaQueuePair::~RdmaQueuePair() {
  if (manager_ != nullptr) manager_->Forget(this);
  if (attached_) {
    const uint32_t number = pair_->qp_num;
    device_->DropPair(number);
    pair_.reset();
    send_queue_->Detach(send_place_, number);
    recv_queue_->Detach(recv_place_, number);
  }
  send_queue_->Unreserve(reserved_send_);
  recv_queue_->Unreserve(reserved_recv_);
  if (counted_) device_->UncountPair();
}

// ---- Sending ----

absl::Status RdmaQueuePair::CheckSend(const SendWorkRequest& request) const {
  if (sends_.full()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the send queue is full, all of send_depth, ", options_.send_depth, ": poll, then post"));
  }
  const Capabilities& can = device_->capabilities();
  bool supported = true;
  switch (request.opcode) {
    case Opcode::kSend:
    case Opcode::kWrite:
    case Opcode::kRead:
      break;
    case Opcode::kWriteWithImm: supported = can.write_with_imm; break;
    case Opcode::kSendWithImm: supported = can.send_with_imm; break;
    case Opcode::kSendWithInvalidate: supported = can.send_with_invalidate; break;
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAndAdd:
      supported = can.atomics;
      if (supported && (request.sg_list.size() != 1 || request.sg_list[0].length != 8)) {
        return absl::InvalidArgumentError("an atomic needs one piece of 8 bytes");
      }
      break;
    case Opcode::kLocalInvalidate:
    case Opcode::kBindWindow: supported = can.memory_windows; break;
    default: supported = false;
  }
  if (!supported) {
    return absl::UnimplementedError(absl::StrCat(
        can.device, " does not do opcode ", static_cast<uint32_t>(request.opcode)));
  }
  if (request.opcode == Opcode::kRead && request.sg_list.size() > can.read_sge_max) {
    return absl::InvalidArgumentError(absl::StrCat("a READ into ", request.sg_list.size(),
                                                   " pieces; the device takes read_sge_max, ",
                                                   can.read_sge_max));
  }
  if (request.sg_list.size() > options_.send_sge_max) {
    return absl::InvalidArgumentError(absl::StrCat("a request of ", request.sg_list.size(),
                                                   " pieces; this queue pair takes send_sge_max, ",
                                                   options_.send_sge_max));
  }
  uint64_t bytes = 0;
  for (const ScatterGatherEntry& piece : request.sg_list) bytes += piece.length;
  if (bytes > can.message_bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", bytes,
                                                   " bytes; the device takes message_bytes_max, ",
                                                   can.message_bytes_max));
  }
  if ((request.flags & kSendInline) != 0 && bytes > options_.inline_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes, " inline bytes; this queue pair takes inline_bytes_max, ",
                     options_.inline_bytes_max));
  }
  return absl::OkStatus();
}

void RdmaQueuePair::FillSend(const SendWorkRequest& request, ibv_send_wr* work) const {
  // libsiw takes the length of a READ without pieces from whatever was in the queue there before.
  const auto pieces = request.opcode == Opcode::kRead ? domain_->NotEmpty(request.sg_list)
                                                      : request.sg_list;
  work->sg_list = AsSge(pieces);
  work->num_sge = static_cast<int>(pieces.size());
  work->opcode = static_cast<ibv_wr_opcode>(request.opcode);
  work->send_flags = request.flags;
  work->imm_data = 0;  // rxe refuses a window's binding with any.
  switch (request.opcode) {
    case Opcode::kSend:
      break;
    case Opcode::kSendWithImm:
      work->imm_data = htonl(request.imm_data);
      break;
    case Opcode::kWriteWithImm:
      work->imm_data = htonl(request.imm_data);
      [[fallthrough]];
    case Opcode::kWrite:
    case Opcode::kRead:
      work->wr.rdma.remote_addr = request.remote.address;
      work->wr.rdma.rkey = request.remote.key.value;
      break;
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAndAdd:
      work->wr.atomic.remote_addr = request.atomic.address;
      work->wr.atomic.compare_add = request.atomic.compare_add;
      work->wr.atomic.swap = request.atomic.swap;
      work->wr.atomic.rkey = request.atomic.key.value;
      break;
    case Opcode::kSendWithInvalidate:
    case Opcode::kLocalInvalidate:
      work->invalidate_rkey = request.invalidate_key.value;
      break;
    case Opcode::kBindWindow: {
      const WindowBinding& bind = request.bind;
      work->bind_mw.mw = static_cast<RdmaMemoryWindow*>(bind.window)->handle();
      work->bind_mw.rkey = bind.key.value;
      work->bind_mw.bind_info = {
          .mr = static_cast<const RdmaMemoryRegion*>(bind.region)->handle(),
          .addr = bind.address,
          .length = bind.length,
          .mw_access_flags = bind.access};
      break;
    }
  }
}

absl::Status RdmaQueuePair::PostSend(std::span<const SendWorkRequest> requests, size_t* accepted) {
  if (accepted != nullptr) *accepted = 0;
  const QueuePairState state = state_.load(std::memory_order_relaxed);
  if (state != QueuePairState::kReadyToSend && state != QueuePairState::kError) [[unlikely]] {
    return absl::FailedPreconditionError("the queue pair is not connected yet");
  }
  absl::Status status;
  if (state == QueuePairState::kError && IsFlushedHere()) [[unlikely]] {
    const size_t count = KeepForSweep(
        requests, sends_, [this](const auto& request) { return CheckSend(request); }, &status);
    if (accepted != nullptr) *accepted = count;
    return status;
  }
  while (status.ok() && !requests.empty()) {
    const size_t count = PostChunk(requests, &status);
    requests = requests.subspan(count);
    if (accepted != nullptr) *accepted += count;
  }
  return status;
}

// Posts a chunk, or less if a request is refused; returns how many were accepted.
size_t RdmaQueuePair::PostChunk(std::span<const SendWorkRequest> requests, absl::Status* status) {
  ibv_send_wr works[kPostChunk];
  size_t count = 0;
  WorkId id = send_place_;
  for (; count < std::min(requests.size(), kPostChunk); ++count) {
    *status = CheckSend(requests[count]);
    if (!status->ok()) break;
    FillSend(requests[count], &works[count]);
    id.sequence = sends_.next();
    works[count].wr_id = id.Encode();
    if (requests[count].opcode == Opcode::kRead) {
      last_read_ = id.sequence;
    } else if (device_->is_iwarp() && sends_.IsOutstanding(last_read_)) {
      // Soft-iWARP completes requests behind a READ before it, against the order of the queue.
      works[count].send_flags |= IBV_SEND_FENCE;
    }
    works[count].next = &works[count + 1];
    sends_.Push(requests[count].wr_id,
                options_.signal_all || (requests[count].flags & kSendSignaled) != 0);
  }
  if (count == 0) return 0;
  works[count - 1].next = nullptr;
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(pair_.get(), works, &bad);
  if (result != 0) [[unlikely]] {
    const size_t posted = bad == nullptr ? count : static_cast<size_t>(bad - works);
    sends_.Unpush(static_cast<uint32_t>(count - posted));
    count = posted;
    if (bad == nullptr) {
      // All of them are in the queue, and the kernel will not look at it: the connection is ending.
      MoveToError();
    } else {
      *status = PostError("ibv_post_send", ErrorOf(result));
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const SendWorkRequest& request = requests[i];
    if (request.opcode == Opcode::kBindWindow) {
      static_cast<RdmaMemoryWindow*>(request.bind.window)->SetKey(request.bind.key);
    }
  }
  return count;
}

// ---- Receiving ----

absl::Status RdmaQueuePair::CheckRecv(const RecvWorkRequest& request) const {
  if (request.sg_list.size() > options_.recv_sge_max) {
    return absl::InvalidArgumentError(absl::StrCat("a receive of ", request.sg_list.size(),
                                                   " pieces; this queue pair takes recv_sge_max, ",
                                                   options_.recv_sge_max));
  }
  if (recvs_.full()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the receive queue is full, all of recv_depth, ", options_.recv_depth, ": poll first"));
  }
  return absl::OkStatus();
}

absl::Status RdmaQueuePair::PostRecv(std::span<const RecvWorkRequest> requests, size_t* accepted) {
  if (accepted != nullptr) *accepted = 0;
  if (shared_ != nullptr) {
    return absl::FailedPreconditionError(
        "this queue pair takes its receives from a shared receive queue: post them there");
  }
  absl::Status status;
  const bool in_error = state_.load(std::memory_order_relaxed) == QueuePairState::kError;
  if (in_error && IsFlushedHere()) [[unlikely]] {
    const size_t count = KeepForSweep(
        requests, recvs_, [this](const auto& request) { return CheckRecv(request); }, &status);
    if (accepted != nullptr) *accepted = count;
    return status;
  }
  while (status.ok() && !requests.empty()) {
    const size_t count = PostRecvChunk(requests, &status);
    requests = requests.subspan(count);
    if (accepted != nullptr) *accepted += count;
  }
  // rxe looks at the receives of a pair in error only when it is told again.
  if (in_error) [[unlikely]] {
    ModifyToError();
  }
  return status;
}

size_t RdmaQueuePair::PostRecvChunk(std::span<const RecvWorkRequest> requests,
                                    absl::Status* status) {
  ibv_recv_wr works[kPostChunk];
  size_t count = 0;
  WorkId id = recv_place_;
  for (; count < std::min(requests.size(), kPostChunk); ++count) {
    *status = CheckRecv(requests[count]);
    if (!status->ok()) break;
    const auto pieces = domain_->NotEmpty(requests[count].sg_list);
    id.sequence = recvs_.next();
    works[count] = {.wr_id = id.Encode(),
                    .next = &works[count + 1],
                    .sg_list = AsSge(pieces),
                    .num_sge = static_cast<int>(pieces.size())};
    recvs_.Push(requests[count].wr_id, /*completes=*/true);
  }
  if (count == 0) return 0;
  works[count - 1].next = nullptr;
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_recv(pair_.get(), works, &bad);
  if (result != 0) [[unlikely]] {
    const size_t posted = bad == nullptr ? count : static_cast<size_t>(bad - works);
    recvs_.Unpush(static_cast<uint32_t>(count - posted));
    count = posted;
    *status = PostError("ibv_post_recv", ErrorOf(result));
  }
  return count;
}

// ---- Completions ----

void RdmaQueuePair::NoteStatus(CompletionStatus status) {
  // InfiniBand specification vol. 1, 10.3.1: any completion in error moves the pair to error.
  if (status != CompletionStatus::kSuccess) [[unlikely]] {
    MarkError();
  }
}

uint64_t RdmaQueuePair::RetireSend(uint32_t sequence, CompletionStatus status) {
  NoteStatus(status);
  if (status != CompletionStatus::kSuccess) ++sends_failed_;
  return sends_.Retire(sequence);
}

uint64_t RdmaQueuePair::RetireRecv(uint32_t sequence, CompletionStatus status) {
  NoteStatus(status);
  if (status == CompletionStatus::kSuccess) NoteReceived();
  return recvs_.Retire(sequence);
}

void RdmaQueuePair::OnSharedReceive(CompletionStatus status) {
  NoteStatus(status);
  if (status == CompletionStatus::kSuccess) NoteReceived();
}

void RdmaQueuePair::NoteReceived() {
  ++messages_received_;
  if (state_.load(std::memory_order_relaxed) != QueuePairState::kInit) [[likely]]
    return;
  if (manager_ == nullptr || early_receive_told_) return;
  early_receive_told_ = true;
  manager_->OnEarlyReceive(this);
}

// ---- Flushed here and not by the hardware ----

bool RdmaQueuePair::IsFlushedHere() const { return device_->is_iwarp(); }

template <class Request, class Check>
size_t RdmaQueuePair::KeepForSweep(std::span<const Request> requests, OutstandingRequests& queue,
                                   Check check, absl::Status* status) {
  size_t count = 0;
  for (; count < requests.size(); ++count) {
    *status = check(requests[count]);
    if (!status->ok()) break;
    queue.Push(requests[count].wr_id, /*completes=*/true);
  }
  MoveToError();
  SweepLater();
  return count;
}

void RdmaQueuePair::SweepLater() {
  send_queue_->SweepLater(this);
  if (recv_queue_ != send_queue_) recv_queue_->SweepLater(this);
}

void RdmaQueuePair::FlushWhatIsLost(RdmaCompletionQueue& queue) {
  const auto flush_into = [&](WorkId place) {
    return [&queue, place, this](uint32_t sequence) mutable {
      place.sequence = sequence;
      queue.PushFlushed(place, number());
    };
  };
  if (&queue == send_queue_) sends_.Sweep(flush_into(send_place_));
  if (&queue == recv_queue_ && shared_ == nullptr) recvs_.Sweep(flush_into(recv_place_));
}

// ---- State ----

absl::Status RdmaQueuePair::Modify(ibv_qp_attr& attributes, int mask) {
  const int result = ibv_modify_qp(pair_.get(), &attributes, mask);
  if (result == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the queue pair cannot go to state ", static_cast<int>(attributes.qp_state),
                   "; ", Describe("ibv_modify_qp", ErrorOf(result))));
}

QueuePairState RdmaQueuePair::state() const {
  const QueuePairState known = state_.load(std::memory_order_relaxed);
  // A pair that only answers its peer's requests gets no completion when one of them breaks it:
  // the hardware knows. Soft-iWARP does not (it always says RESET), but it ends the connection.
  if (known != QueuePairState::kReadyToSend || device_->is_iwarp()) return known;
  ibv_qp_attr attributes;
  ibv_qp_init_attr ignored;
  if (ibv_query_qp(pair_.get(), &attributes, IBV_QP_STATE, &ignored) == 0 &&
      attributes.qp_state == IBV_QPS_ERR) {
    return QueuePairState::kError;
  }
  return known;
}

void RdmaQueuePair::MoveToError() {
  // Also when a completion said so already: providers differ in whether the rest flushes by itself.
  if (std::exchange(error_requested_, true)) return;
  MarkError();
  ModifyToError();  // Returns when the kernel has flushed what it knows of.
  if (IsFlushedHere()) SweepLater();
}

void RdmaQueuePair::ModifyToError() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  absl::Status status = Modify(attributes, IBV_QP_STATE);
  // On iWARP the kernel has ended the connection by itself, perhaps.
  LOG_IF(WARNING, !status.ok() && !device_->is_iwarp()) << status;
}

QueuePairCounters RdmaQueuePair::counters() const {
  return {.receiver_not_ready = device_->ReceiverNotReadyCount() - receiver_not_ready_before_,
          .messages_sent = sends_.retired() - sends_failed_,
          .messages_received = messages_received_,
          .bytes_staged = 0};
}

}  // namespace verbena::rdma
