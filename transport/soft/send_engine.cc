// SPDX-License-Identifier: Apache-2.0
//
// PostSend, the SEND family, and requests that wait.

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/memory.h"
#include "verbena/transport/soft/copy_small.h"
#include "verbena/transport/soft/executing_mark.h"
#include "verbena/transport/soft/queue_pair.h"

namespace verbena::soft {
namespace {

bool IsInline(const SendWorkRequest& request) { return (request.flags & kSendInline) != 0; }

// Copies the request's buffers, one after the other, to `to`.
void Gather(const SendWorkRequest& request, std::byte* to) {
  for (const ScatterGatherEntry& sge : request.sg_list) {
    std::memmove(to, reinterpret_cast<const void*>(sge.address), sge.length);
    to += sge.length;
  }
}

// Where a part of a receive is in our mapping of the peer's memory.
struct Destination {
  std::byte* memory;
  size_t bytes;
};

void GatherTo(const SendWorkRequest& request, std::span<const Destination> destinations) {
  size_t index = 0;
  size_t filled = 0;
  for (const ScatterGatherEntry& sge : request.sg_list) {
    size_t done = 0;
    while (done < sge.length) {
      const Destination& destination = destinations[index];
      const size_t part = std::min<size_t>(sge.length - done, destination.bytes - filled);
      std::memmove(destination.memory + filled,
                   reinterpret_cast<const std::byte*>(sge.address) + done, part);
      done += part;
      filled += part;
      if (filled == destination.bytes) {
        ++index;
        filled = 0;
      }
    }
  }
}

// InfiniBand specification vol. 1, table 45.
constexpr uint32_t kReceiverNotReadyTimerUs[32] = {
    655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
    480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
    20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

// ConnectOptions::receiver_not_ready_retries.
constexpr uint8_t kForEver = 7;

}  // namespace

absl::Status SoftQueuePair::PostSend(std::span<const SendWorkRequest> requests, size_t* accepted) {
  Refusal refusal = Refusal::kNone;
  size_t count = 0;
  for (; count < requests.size(); ++count) {
    refusal = PostOne(requests[count]);
    if (refusal != Refusal::kNone) [[unlikely]]
      break;
  }
  if (accepted != nullptr) *accepted = count;
  if (refusal != Refusal::kNone) [[unlikely]]
    return ToStatus(refusal);
  return absl::OkStatus();
}

inline SoftQueuePair::Refusal SoftQueuePair::PostOne(const SendWorkRequest& request) {
  const QueuePairState state = state_.load(std::memory_order_acquire);
  if (state == QueuePairState::kInit) [[unlikely]]
    return Refusal::kNotConnected;
  if (request.sg_list.size() > send_sge_max_) [[unlikely]]
    return Refusal::kTooManySge;
  if (sends_in_use_ == send_depth_) [[unlikely]]
    return Refusal::kFull;
  if (state == QueuePairState::kReadyToSend && pending_count_ == 0 &&
      request.opcode == Opcode::kSend && InlineFits(request)) [[likely]] {
    const Outcome outcome = ExecuteSend(request, WireOpcode::kSend);
    if (outcome != Outcome::kDone) [[unlikely]]
      Wait(request, outcome);
    return Refusal::kNone;
  }
  return PostRare(request);
}

// Not inline at all, or one or two pieces that fit; other inline requests are for Check().
inline bool SoftQueuePair::InlineFits(const SendWorkRequest& request) const {
  if (!IsInline(request)) return true;
  const std::span<const ScatterGatherEntry> pieces = request.sg_list;
  if (pieces.size() == 1) return pieces[0].length <= inline_bytes_max_;
  return pieces.size() == 2 && uint64_t{pieces[0].length} + pieces[1].length <= inline_bytes_max_;
}

SoftQueuePair::Refusal SoftQueuePair::PostRare(const SendWorkRequest& request) {
  const Refusal refusal = Check(request);
  if (refusal != Refusal::kNone) return refusal;
  if (request.opcode == Opcode::kBindWindow && request.bind.window != nullptr) {
    // At once, so that NextKey() of a request posted behind this one differs.
    request.bind.window->set_remote_key(request.bind.key);
  }
  if (state() == QueuePairState::kError) {
    EnterError();
    Complete(request, CompletionStatus::kFlushed, 0);
  } else if (pending_count_ != 0) {
    Enqueue(request);
  } else if (const Outcome outcome = Execute(request); outcome != Outcome::kDone) {
    Wait(request, outcome);
  }
  return Refusal::kNone;
}

SoftQueuePair::Refusal SoftQueuePair::Check(const SendWorkRequest& request) const {
  switch (request.opcode) {
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAndAdd:
      if (request.sg_list.size() != 1 || request.sg_list[0].length != sizeof(uint64_t)) {
        return Refusal::kBadAtomic;
      }
      break;
    case Opcode::kWrite:
    case Opcode::kWriteWithImm:
    case Opcode::kSend:
    case Opcode::kSendWithImm:
    case Opcode::kSendWithInvalidate:
      if (IsInline(request)) {
        uint64_t bytes = 0;
        for (const ScatterGatherEntry& sge : request.sg_list) bytes += sge.length;
        if (bytes > inline_bytes_max_) return Refusal::kInlineTooLong;
      }
      break;
    case Opcode::kRead:
    case Opcode::kLocalInvalidate:
    case Opcode::kBindWindow:
      break;
    default:
      return Refusal::kOpcode;
  }
  return Refusal::kNone;
}

absl::Status SoftQueuePair::ToStatus(Refusal refusal) const {
  switch (refusal) {
    case Refusal::kNone:
      break;
    case Refusal::kFull:
      return absl::ResourceExhaustedError(
          absl::StrCat("the send queue is full: send_depth is ", send_depth_));
    case Refusal::kTooManySge:
      return absl::InvalidArgumentError(
          absl::StrCat("more scatter/gather entries than send_sge_max, ", send_sge_max_));
    case Refusal::kInlineTooLong:
      return absl::InvalidArgumentError(
          absl::StrCat("inline data is longer than inline_bytes_max, ", inline_bytes_max_));
    case Refusal::kBadAtomic:
      return absl::InvalidArgumentError("an atomic takes one scatter/gather entry of 8 bytes");
    case Refusal::kOpcode:
      return absl::UnimplementedError("unknown opcode");
    case Refusal::kNotConnected:
      return absl::FailedPreconditionError("the queue pair is not connected yet");
  }
  return absl::OkStatus();
}

SoftQueuePair::Outcome SoftQueuePair::Execute(const SendWorkRequest& request) {
  switch (request.opcode) {
    case Opcode::kSend:
      return ExecuteSend(request, WireOpcode::kSend);
    case Opcode::kSendWithImm:
      return ExecuteSend(request, WireOpcode::kSendWithImm);
    case Opcode::kSendWithInvalidate:
      return ExecuteSendWithInvalidate(request);
    case Opcode::kWrite:
      return ExecuteWrite(request, /*with_imm=*/false);
    case Opcode::kWriteWithImm:
      return ExecuteWrite(request, /*with_imm=*/true);
    case Opcode::kRead:
      return ExecuteRead(request);
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAndAdd:
      return ExecuteAtomic(request);
    case Opcode::kBindWindow:
      return ExecuteBind(request);
    case Opcode::kLocalInvalidate:
      return ExecuteInvalidate(request);
  }
  LOG(FATAL) << "opcode " << static_cast<uint32_t>(request.opcode) << " passed Check()";
  __builtin_unreachable();
}

inline SoftQueuePair::Outcome SoftQueuePair::ExecuteSend(const SendWorkRequest& request,
                                                         WireOpcode opcode) {
  uint64_t bytes = 0;
  if (!SumAndCheckLocal(request, kAccessLocalRead, &bytes)) [[unlikely]] {
    return FailSend(request, CompletionStatus::kLocalProtectionError);
  }
  if (bytes <= kEntryPayloadBytes) {
    return SendSmall(request, opcode, static_cast<uint32_t>(bytes));
  }
  if (bytes > kMessageBytesMax) return FailSend(request, CompletionStatus::kLocalLengthError);
  return SendLarge(request, opcode, static_cast<uint32_t>(bytes));
}

inline SoftQueuePair::Outcome SoftQueuePair::SendSmall(const SendWorkRequest& request,
                                                       WireOpcode opcode, uint32_t bytes) {
  if (sent_ == tail_seen_ && !ReceiveAvailable()) [[unlikely]]
    return NoReceive(request);
  if (static_cast<int32_t>(look_below_ - sent_) > 0) [[unlikely]] {
    const ReceiveEntry& receive = tx_.receives[sent_ & tx_.mask];
    if ((ReadOnce(receive.flags) & kReceiveBad) != 0) {
      return FailReceive(request, opcode, bytes, WireStatus::kBadReceive);
    }
    if (bytes > ReadOnce(receive.length)) {
      return FailReceive(request, opcode, bytes, WireStatus::kTooLong);
    }
  }
  std::byte* to = tx_.completions[sent_ & tx_.mask].data;
  for (const ScatterGatherEntry& sge : request.sg_list) {
    CopySmall(to, reinterpret_cast<const std::byte*>(sge.address), sge.length);
    to += sge.length;
  }
  Publish(request, opcode, bytes, kEntryInside, WireStatus::kSuccess);
  return FinishPublication(request, bytes);
}

SoftQueuePair::Outcome SoftQueuePair::SendLarge(const SendWorkRequest& request, WireOpcode opcode,
                                                uint32_t bytes) {
  {
    ExecutingMark mark(tx_.control, &executing_count_, fence_);
    if (PeerClosed()) return FailSend(request, CompletionStatus::kRetryExceeded);
    if (sent_ == tail_seen_ && !ReceiveAvailable()) return NoReceive(request);
    const ReceiveEntry& receive = tx_.receives[sent_ & tx_.mask];
    const uint16_t flags = ReadOnce(receive.flags);
    if ((flags & kReceiveBad) != 0) {
      return FailReceive(request, opcode, bytes, WireStatus::kBadReceive);
    }
    const bool staged = (flags & kReceiveStaged) != 0;
    if (bytes > ReadOnce(receive.length) || (staged && bytes > kStagingBytes)) {
      return FailReceive(request, opcode, bytes, WireStatus::kTooLong);
    }
    if (staged) {
      Gather(request, tx_.StagingOf(sent_));
    } else {
      Destination destinations[kReceiveSgeMax];
      size_t count = 0;
      uint64_t left = bytes;
      const uint32_t parts = std::min<uint32_t>(ReadOnce(receive.sge_count), kReceiveSgeMax);
      for (uint32_t i = 0; i < parts && left != 0; ++i) {
        const uint64_t part = std::min<uint64_t>(left, ReadOnce(receive.sge[i].length));
        if (part == 0) continue;
        bool missing = false;
        std::byte* memory =
            MapPeerMemory(ReadOnce(receive.sge[i].region), ReadOnce(receive.sge[i].offset), part,
                          /*write=*/true, &missing);
        if (missing) return Outcome::kRegionMissing;
        if (memory == nullptr) return FailSend(request, CompletionStatus::kRemoteOperationError);
        destinations[count++] = {memory, part};
        left -= part;
      }
      // The parts are shorter than their sum says: the peer lies.
      if (left != 0) return FailSend(request, CompletionStatus::kRemoteOperationError);
      GatherTo(request, {destinations, count});
    }
    Publish(request, opcode, bytes, /*flags=*/0, WireStatus::kSuccess);
  }
  return FinishPublication(request, bytes);
}

SoftQueuePair::Outcome SoftQueuePair::ExecuteSendWithInvalidate(const SendWorkRequest& request) {
  const uint32_t key = request.invalidate_key.value;
  KeyGrant grant;
  if (InvalidatedByUs(key) || !ReadKey(peer_keys_, key, &grant) ||
      grant.queue_pair != peer_queue_pair_) {
    return FailAtPeer(request, CompletionStatus::kRemoteAccessError, Fault::kAccess);
  }
  const uint32_t sent_before = sent_;
  const Outcome outcome = ExecuteSend(request, WireOpcode::kSendWithInvalidate);
  // From here on our own WRITEs must fail, also before the peer polls the message.
  if (sent_ != sent_before) RememberInvalidated(key);
  return outcome;
}

bool SoftQueuePair::ReceiveAvailable() {
  const uint64_t tail = tx_.control->receive_tail.load(std::memory_order_acquire);
  tail_seen_ = static_cast<uint32_t>(tail);
  look_below_ = static_cast<uint32_t>(tail >> 32);
  return sent_ != tail_seen_;
}

SoftQueuePair::Outcome SoftQueuePair::NoReceive(const SendWorkRequest& request) {
  if (PeerClosed()) return FailSend(request, CompletionStatus::kRetryExceeded);
  return Outcome::kReceiverNotReady;
}

SoftQueuePair::Outcome SoftQueuePair::FailReceive(const SendWorkRequest& request, WireOpcode opcode,
                                                  uint32_t bytes, WireStatus status) {
  // The receive that this message met ends with an error, too; no fault message is needed.
  Publish(request, opcode, bytes, /*flags=*/0, status);
  WakePeer(/*solicited=*/true);
  if (PeerClosed()) return FailSend(request, CompletionStatus::kRetryExceeded);
  return FailSend(request, status == WireStatus::kTooLong
                               ? CompletionStatus::kRemoteInvalidRequestError
                               : CompletionStatus::kRemoteOperationError);
}

void SoftQueuePair::WakePeer(bool solicited) {
  LightBarrier(fence_);
  const uint32_t mine = solicited ? kWakeAny | kWakeSolicited : kWakeAny;
  if ((tx_.control->wake.load(std::memory_order_relaxed) & mine) == 0) return;
  const uint32_t before = tx_.control->wake.fetch_and(kWakeClosed, std::memory_order_seq_cst);
  // Of two that came here at once, one writes.
  if ((before & (kWakeAny | kWakeSolicited)) != 0) SignalEvent(peer_.event.get());
}

// Waiting ----------------------------------------------------------------------------------------

void SoftQueuePair::Enqueue(const SendWorkRequest& request) {
  DCHECK_LT(pending_count_, send_depth_);
  const uint32_t index = (pending_head_ + pending_count_) % send_depth_;
  PendingSend& pending = pending_[index];
  pending.request = request;
  if (IsInline(request)) {
    std::byte* saved = pending_inline_.get() + size_t{index} * inline_bytes_max_;
    uint32_t bytes = 0;
    for (const ScatterGatherEntry& sge : request.sg_list) bytes += sge.length;
    Gather(request, saved);
    pending.sge[0] = {reinterpret_cast<uint64_t>(saved), bytes, {}};
    pending.request.sg_list = {pending.sge, 1};
  } else {
    std::copy(request.sg_list.begin(), request.sg_list.end(), pending.sge);
    pending.request.sg_list = {pending.sge, request.sg_list.size()};
  }
  ++pending_count_;
  ++sends_in_use_;
}

void SoftQueuePair::Wait(const SendWorkRequest& request, Outcome outcome) {
  if (StallEnds(outcome)) {
    FailSend(request, stall_status_);
    return;
  }
  Enqueue(request);
  send_queue_->AddStalled(this);
}

bool SoftQueuePair::Redrive() {
  while (pending_count_ != 0) {
    if (state() != QueuePairState::kReadyToSend) {
      EnterError();
      return false;
    }
    // Off the queue first, since a failure flushes what is on it.
    PendingSend& pending = pending_[pending_head_];
    const uint32_t next = (pending_head_ + 1) % send_depth_;
    const uint32_t head = std::exchange(pending_head_, next);
    --pending_count_;
    --sends_in_use_;
    const Outcome outcome = Execute(pending.request);
    if (outcome != Outcome::kDone) {
      if (!StallEnds(outcome)) {
        pending_head_ = head;
        ++pending_count_;
        ++sends_in_use_;
        return true;
      }
      FailSend(pending.request, stall_status_);
    }
    stall_ = Outcome::kDone;
  }
  return false;
}

bool SoftQueuePair::StallEnds(Outcome outcome) {
  const auto now = std::chrono::steady_clock::now();
  if (outcome != stall_) {
    stall_ = outcome;
    if (outcome == Outcome::kReceiverNotReady) {
      stall_retries_left_ = retries_;
      return ReceiverNotReadyAgain(now);
    }
    stall_status_ = outcome == Outcome::kRegionMissing ? CompletionStatus::kRemoteAccessError
                                                       : CompletionStatus::kRetryExceeded;
    stall_until_ = now + (outcome == Outcome::kRegionMissing ? kRegionWait : kExecutingWait);
    return false;
  }
  if (now < stall_until_) return false;
  return outcome != Outcome::kReceiverNotReady || ReceiverNotReadyAgain(now);
}

bool SoftQueuePair::ReceiverNotReadyAgain(std::chrono::steady_clock::time_point now) {
  ++counters_.receiver_not_ready;
  if (retries_ != kForEver && stall_retries_left_-- == 0) {
    stall_status_ = CompletionStatus::kReceiverNotReadyRetryExceeded;
    return true;
  }
  stall_until_ = now + std::chrono::microseconds(kReceiverNotReadyTimerUs[peer_timer_]);
  return false;
}

}  // namespace verbena::soft
