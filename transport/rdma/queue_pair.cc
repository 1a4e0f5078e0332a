// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/queue_pair.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/rdma/completion_queue.h"
#include "verbena/transport/rdma/connection_manager_impl.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/protection_domain.h"
#include "verbena/transport/rdma/shared_receive_queue.h"
#include "verbena/transport/rdma/transitions.h"

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
    return absl::InvalidArgumentError(options.send_queue == nullptr ? "send_queue is null"
                                                                    : "recv_queue is null");
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

absl::Status CannotGoTo(ibv_qp_state state, int error) {
  return absl::UnavailableError(absl::StrCat("the queue pair cannot go to state ",
                                             static_cast<int>(state), "; ",
                                             Describe("ibv_modify_qp", error)));
}

}  // namespace

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
  const int error = rdma::MoveToInit(pair_.get(), device_->default_port(), device_->peer_rights());
  if (error != 0) return CannotGoTo(IBV_QPS_INIT, error);
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
  return result == 0 ? absl::OkStatus() : CannotGoTo(attributes.qp_state, ErrorOf(result));
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
