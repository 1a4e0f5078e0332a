// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/queue_pair.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/control_thread.h"
#include "verbena/transport/soft/device_impl.h"
#include "verbena/transport/soft/protection_domain.h"
#include "verbena/transport/soft/shared_receive_queue.h"

namespace verbena::soft {
namespace {

using std::chrono::steady_clock;

absl::Status OutOfRange(absl::string_view option, uint32_t value, absl::string_view capability,
                        uint32_t limit) {
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", value, " and must be at most ", capability, ", ", limit));
}

absl::Status CheckOptions(const QueuePairOptions& options) {
  if (options.send_queue == nullptr || options.recv_queue == nullptr) {
    return absl::InvalidArgumentError("a queue pair needs send_queue and recv_queue");
  }
  if (options.send_depth == 0 || options.send_depth > kQueueDepthMax) {
    return OutOfRange("send_depth", options.send_depth, "queue_depth_max", kQueueDepthMax);
  }
  if (options.shared_receive == nullptr &&
      (options.recv_depth == 0 || options.recv_depth > kQueueDepthMax)) {
    return OutOfRange("recv_depth", options.recv_depth, "queue_depth_max", kQueueDepthMax);
  }
  if (options.send_sge_max > kSendSgeMax) {
    return OutOfRange("send_sge_max", options.send_sge_max, "send_sge_max", kSendSgeMax);
  }
  if (options.recv_sge_max > kReceiveSgeMax) {
    return OutOfRange("recv_sge_max", options.recv_sge_max, "recv_sge_max", kReceiveSgeMax);
  }
  if (options.inline_bytes_max > kInlineBytesMax) {
    return OutOfRange("inline_bytes_max", options.inline_bytes_max, "inline_bytes_max",
                      kInlineBytesMax);
  }
  return absl::OkStatus();
}

CompletionOpcode CompletionOpcodeOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWrite:
    case Opcode::kWriteWithImm:
      return CompletionOpcode::kWrite;
    case Opcode::kRead:
      return CompletionOpcode::kRead;
    case Opcode::kCompareAndSwap:
      return CompletionOpcode::kCompareAndSwap;
    case Opcode::kFetchAndAdd:
      return CompletionOpcode::kFetchAndAdd;
    case Opcode::kBindWindow:
      return CompletionOpcode::kBindWindow;
    case Opcode::kLocalInvalidate:
      return CompletionOpcode::kLocalInvalidate;
    default:
      return CompletionOpcode::kSend;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SoftQueuePair>> SoftQueuePair::Create(
    SoftProtectionDomain* domain, const QueuePairOptions& options) {
  absl::Status status = CheckOptions(options);
  if (!status.ok()) return status;
  status = domain->device().AddQueuePair();
  if (!status.ok()) return status;
  std::unique_ptr<SoftQueuePair> queue_pair(new SoftQueuePair(domain, options));
  status = queue_pair->Allocate();
  if (!status.ok()) return status;
  return queue_pair;
}

SoftQueuePair::SoftQueuePair(SoftProtectionDomain* domain, const QueuePairOptions& options)
    : signal_all_(options.signal_all),
      send_depth_(options.send_depth),
      send_sge_max_(options.send_sge_max),
      keys_(&domain->keys()),
      recv_depth_(options.recv_depth),
      shared_(static_cast<SoftSharedReceiveQueue*>(options.shared_receive)),
      domain_(domain),
      send_queue_(static_cast<SoftCompletionQueue*>(options.send_queue)),
      recv_queue_(static_cast<SoftCompletionQueue*>(options.recv_queue)),
      number_(domain->device().NextQueuePairNumber()),
      recv_sge_max_(options.recv_sge_max),
      inline_bytes_max_(options.inline_bytes_max) {
  domain_->AddChild();
  if (shared_ != nullptr) {
    shared_->Attach(this);
    recv_depth_ = std::min(kSharedWindow, shared_->depth());
  }
}

absl::Status SoftQueuePair::Allocate() {
  absl::Status status = send_queue_->Reserve(send_depth_);
  if (!status.ok()) return status;
  send_reserved_ = send_depth_;
  status = recv_queue_->Reserve(recv_depth_);
  if (!status.ok()) return status;
  recv_reserved_ = recv_depth_;

  const SegmentLayout layout(std::bit_ceil(recv_depth_));
  absl::StatusOr<SealedMemory> segment =
      CreateSealedMemory("verbena-queue-pair", layout.bytes, /*peers_may_write=*/true);
  if (!segment.ok()) return segment.status();
  segment_ = *std::move(segment);
  own_ = SegmentView(segment_.mapping.data(), layout);
  absl::StatusOr<UniqueFd> event = CreateEvent();
  if (!event.ok()) return event.status();
  event_ = *std::move(event);
  if (recv_queue_->channel() != nullptr) {
    status = recv_queue_->channel()->Watch(event_.get());
    if (!status.ok()) return status;
    watched_ = true;
  }
  if (shared_ == nullptr) posted_.reset(new PostedReceive[layout.slots]);
  pending_.reset(new PendingSend[send_depth_]);
  pending_inline_.reset(new std::byte[size_t{send_depth_} * inline_bytes_max_]);

  send_queue_->AddQueuePair(this);
  recv_queue_->AddQueuePair(this);
  recv_queue_->AddReceiveSlot({&own_.completions[0].sequence, 1, this});
  if (shared_ != nullptr) PublishShared();
  return absl::OkStatus();
}

SoftQueuePair::~SoftQueuePair() {
  ControlThread& control = domain_->device().control();
  if (own_.control != nullptr) {  // Else Allocate failed.
    control.FailQueuePair(this);
    AwaitPeer();
    control.ForgetQueuePair(this);
  }
  send_queue_->RemoveQueuePair(this);
  recv_queue_->RemoveQueuePair(this);
  send_queue_->Release(send_reserved_);
  recv_queue_->Release(recv_reserved_);
  if (watched_) recv_queue_->channel()->Unwatch(event_.get());
  if (shared_ != nullptr) shared_->Detach(this);
  domain_->DropChild();
  domain_->device().DropQueuePair();
}

// Connection: the control thread -----------------------------------------------------------------

bool SoftQueuePair::Establish(PeerResources peer, uint8_t receiver_not_ready_retries) {
  if (state() != QueuePairState::kInit) return false;
  peer_ = std::move(peer);
  peer_keys_ = reinterpret_cast<const KeyEntry*>(peer_.keys.data());
  peer_queue_pair_ = peer_.queue_pair;
  peer_timer_ = peer_.receiver_not_ready_timer;
  retries_ = receiver_not_ready_retries;
  fence_ = peer_.fence;
  invalidated_.reserve(peer_.slots + 1);
  tx_ = SegmentView(peer_.segment.data(), SegmentLayout(peer_.slots));
  state_.store(QueuePairState::kReadyToSend, std::memory_order_release);
  // A message of an eager client may have come already.
  recv_queue_->WakeIfArmed(/*error=*/true);
  return true;
}

void SoftQueuePair::UpdateRegion(RegionUpdate update) {
  {
    std::lock_guard lock(inbox_mutex_);
    // What was to happen to the same index before is overtaken; so at most kKeysMax wait here.
    std::erase_if(inbox_, [&](const RegionUpdate& earlier) {
      return IndexOfKey(earlier.key) == IndexOfKey(update.key);
    });
    inbox_.push_back(std::move(update));
  }
  RaiseAttention();
}

void SoftQueuePair::Fail(bool peer_gone) {
  if (peer_gone) peer_gone_.store(true, std::memory_order_release);
  state_.store(QueuePairState::kError, std::memory_order_release);
  own_.control->wake.fetch_or(kWakeClosed, std::memory_order_seq_cst);
  RaiseAttention();
  send_queue_->WakeIfArmed(/*error=*/true);
  recv_queue_->WakeIfArmed(/*error=*/true);
}

void SoftQueuePair::RaiseAttention() {
  attention_.store(true, std::memory_order_seq_cst);
  send_queue_->RaiseAttention();
  recv_queue_->RaiseAttention();
}

// The poller -------------------------------------------------------------------------------------

void SoftQueuePair::MoveToError() { domain_->device().control().FailQueuePair(this); }

void SoftQueuePair::HandleAttention() {
  if (!attention_.load(std::memory_order_relaxed)) return;
  attention_.exchange(false, std::memory_order_seq_cst);
  TakeInbox();
  if (state() == QueuePairState::kError) EnterError();
}

void SoftQueuePair::TakeInbox() {
  std::vector<RegionUpdate> updates;
  {
    std::lock_guard lock(inbox_mutex_);
    updates.swap(inbox_);
  }
  for (RegionUpdate& update : updates) {
    const uint32_t index = IndexOfKey(update.key);
    if (index >= remote_regions_.size()) remote_regions_.resize(index + 1);
    RemoteRegion& region = remote_regions_[index];
    // The old mapping goes with `updates`.
    region.key = update.mapping.data() == nullptr ? 0 : update.key;
    region.writable = update.writable;
    region.mapping = std::move(update.mapping);
  }
}

void SoftQueuePair::EnterError() {
  if (entered_error_) return;
  entered_error_ = true;
  state_.store(QueuePairState::kError, std::memory_order_release);
  own_.control->wake.fetch_or(kWakeClosed, std::memory_order_seq_cst);
  SettleWithPeer();
  FlushSends();
  recv_queue_->AddFlushing(this);
}

void SoftQueuePair::SettleWithPeer() {
  if (!connected()) return;
  // From here on the peer either sees kWakeClosed before it copies or publishes, or its mark and
  // its publications are visible to us.
  FullFence();
  if (!fence_) HeavyBarrier();
  own_executing_seen_ = own_.control->executing.load(std::memory_order_seq_cst);
  flush_until_ = steady_clock::now() + kExecutingWait;
}

bool SoftQueuePair::PeerIsStill() {
  if (!connected() || own_executing_seen_ % 2 == 0 ||
      own_.control->executing.load(std::memory_order_acquire) != own_executing_seen_ ||
      peer_gone_.load(std::memory_order_acquire)) {
    return true;
  }
  if (steady_clock::now() < flush_until_) return false;
  LOG(WARNING) << "queue pair " << number_ << ": the peer is stopped in the middle of a copy";
  return true;
}

void SoftQueuePair::AwaitPeer() {
  if (peer_still_) return;
  if (!entered_error_) SettleWithPeer();
  const auto until = steady_clock::now() + kDestroyWait;
  while (!PeerIsStill() && steady_clock::now() < until) sched_yield();
}

void SoftQueuePair::FlushSends() {
  // The first one was being tried when the peer left.
  CompletionStatus status = peer_gone_.load(std::memory_order_acquire)
                                ? CompletionStatus::kRetryExceeded
                                : CompletionStatus::kFlushed;
  while (pending_count_ != 0) {
    const PendingSend& pending = pending_[pending_head_];
    pending_head_ = (pending_head_ + 1) % send_depth_;
    --pending_count_;
    --sends_in_use_;
    Complete(pending.request, status, 0);
    status = CompletionStatus::kFlushed;
  }
}

void SoftQueuePair::Complete(const SendWorkRequest& request, CompletionStatus status,
                             uint32_t bytes) {
  ++sends_in_use_;
  send_queue_->Push({.wr_id = request.wr_id,
                     .status = status,
                     .opcode = CompletionOpcodeOf(request.opcode),
                     .vendor_error = 0,
                     .byte_length = bytes,
                     .imm_data = 0,
                     .queue_pair_number = number_,
                     .flags = 0},
                    this);
}

SoftQueuePair::Outcome SoftQueuePair::FailSend(const SendWorkRequest& request,
                                               CompletionStatus status) {
  Complete(request, status, 0);
  EnterError();
  return Outcome::kDone;
}

SoftQueuePair::Outcome SoftQueuePair::FailAtPeer(const SendWorkRequest& request,
                                                 CompletionStatus status, Fault fault) {
  domain_->device().control().SendFault(this, fault);
  return FailSend(request, status);
}

}  // namespace verbena::soft
