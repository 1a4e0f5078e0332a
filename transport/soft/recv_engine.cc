// SPDX-License-Identifier: Apache-2.0
//
// Posting receives, and taking what the peer wrote into our segment. This file is the one place
// where completion entries are checked: a peer that writes nonsense breaks its own connection.

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/control_thread.h"
#include "verbena/transport/soft/copy_small.h"
#include "verbena/transport/soft/device_impl.h"
#include "verbena/transport/soft/protection_domain.h"
#include "verbena/transport/soft/queue_pair.h"
#include "verbena/transport/soft/shared_receive_queue.h"

namespace verbena::soft {
namespace {

// Fills the buffers of a receive, one after the other.
void Scatter(const PostedReceive& posted, const std::byte* from, uint32_t bytes) {
  for (uint32_t i = 0; i < posted.sge_count && bytes != 0; ++i) {
    const uint32_t part = std::min(bytes, posted.sge[i].length);
    std::memcpy(reinterpret_cast<void*>(posted.sge[i].address), from, part);
    from += part;
    bytes -= part;
  }
}

}  // namespace

// Posting ----------------------------------------------------------------------------------------

void DescribeReceive(const KeyTable& keys, const RecvWorkRequest& request, bool staging,
                     PostedReceive* posted) {
  posted->wr_id = request.wr_id;
  posted->sge_count = 0;
  posted->flags = staging ? kReceiveStaged : kReceiveDirect;
  uint64_t length = 0;
  for (const ScatterGatherEntry& sge : request.sg_list) {
    if (sge.length == 0) continue;
    const LocalEntry* entry = keys.Find(sge.local_key, sge.address, sge.length, kAccessLocalWrite);
    if (entry == nullptr) [[unlikely]] {
      posted->flags = kReceiveBad;
      length = 0;
      break;
    }
    if (entry->region == 0) posted->flags = kReceiveStaged;
    length += sge.length;
    posted->sge[posted->sge_count++] = sge;
  }
  const uint64_t most = posted->flags == kReceiveStaged ? kStagingBytes : UINT32_MAX;
  posted->length = static_cast<uint32_t>(std::min(length, most));
}

absl::Status SoftQueuePair::PostRecv(std::span<const RecvWorkRequest> requests, size_t* accepted) {
  size_t count = 0;
  absl::Status status;
  if (shared_ != nullptr) [[unlikely]] {
    status = absl::FailedPreconditionError("post to the shared receive queue instead");
  } else {
    for (; count < requests.size(); ++count) {
      if (requests[count].sg_list.size() > recv_sge_max_) [[unlikely]] {
        status = absl::InvalidArgumentError(
            absl::StrCat("more scatter/gather entries than recv_sge_max, ", recv_sge_max_));
        break;
      }
      if (posted_count_ - taken_ == recv_depth_) [[unlikely]] {
        status = absl::ResourceExhaustedError(
            absl::StrCat("the receive queue is full: recv_depth is ", recv_depth_));
        break;
      }
      PostedReceive& posted = posted_[posted_count_ & own_.mask];
      DescribeReceive(*keys_, requests[count], /*staging=*/false, &posted);
      PublishReceive(posted);
    }
    if (count != 0) StoreReceiveTail();
  }
  if (accepted != nullptr) *accepted = count;
  if (state() == QueuePairState::kError) [[unlikely]] {
    EnterError();
    recv_queue_->AddFlushing(this);
  }
  return status;
}

void SoftQueuePair::PublishReceive(const PostedReceive& posted) {
  ReceiveEntry& entry = own_.receives[posted_count_ & own_.mask];
  entry.length = posted.length;
  entry.flags = posted.flags;
  entry.sge_count = 0;
  if (posted.flags == kReceiveDirect) {
    entry.sge_count = posted.sge_count;
    for (uint32_t i = 0; i < posted.sge_count; ++i) {
      const ScatterGatherEntry& sge = posted.sge[i];
      const LocalEntry* local =
          keys_->Find(sge.local_key, sge.address, sge.length, kAccessLocalWrite);
      DCHECK(local != nullptr);
      entry.sge[i] = {local->region, sge.length, sge.address - local->begin};
    }
  }
  ++posted_count_;
  // The length shown of a shared receive may change.
  if (posted.length < kEntryPayloadBytes || posted.flags == kReceiveBad || shared_ != nullptr) {
    own_look_below_ = posted_count_;
  }
}

void SoftQueuePair::StoreReceiveTail() {
  // Sequence numbers wrap; "below" must never lag by half their range.
  if (static_cast<int32_t>(own_look_below_ - taken_) < 0) own_look_below_ = taken_;
  own_.control->receive_tail.store(uint64_t{own_look_below_} << 32 | posted_count_,
                                   std::memory_order_release);
}

void SoftQueuePair::PublishShared() {
  if (state() == QueuePairState::kError) return;
  const uint32_t window = std::min(recv_depth_, shared_->available());
  const uint32_t before = posted_count_;
  PostedReceive shown{};
  shown.length = shared_->longest();
  shown.flags = kReceiveStaged;
  while (posted_count_ - taken_ < window) PublishReceive(shown);
  if (posted_count_ != before) StoreReceiveTail();
  if (posted_count_ - taken_ < recv_depth_) shared_->AddHungry(this);
}

void SoftQueuePair::ShowSharedLength() {
  for (uint32_t i = taken_; i != posted_count_; ++i) {
    __atomic_store_n(&own_.receives[i & own_.mask].length, shared_->longest(), __ATOMIC_RELAXED);
  }
}

// Taking -----------------------------------------------------------------------------------------

size_t SoftQueuePair::TakeReceives(ReceiveSlot* slot, std::span<WorkCompletion> completions) {
  // A client may send before we know that it is connected.
  if (receives_closed_ || state() == QueuePairState::kInit) [[unlikely]]
    return 0;
  size_t count = 0;
  while (count < completions.size() && !receives_closed_) {
    const CompletionEntry& entry = own_.completions[taken_ & own_.mask];
    if (entry.sequence.load(std::memory_order_acquire) != taken_ + 1) break;
    if (!TakeOne(entry, &completions[count])) [[unlikely]]
      break;
    ++count;
  }
  slot->sequence = &own_.completions[taken_ & own_.mask].sequence;
  slot->expected = taken_ + 1;
  if (shared_ != nullptr && count != 0) PublishShared();
  return count;
}

inline bool SoftQueuePair::TakeOne(const CompletionEntry& entry, WorkCompletion* completion) {
  if (taken_ == posted_count_) [[unlikely]] {
    RefuseEntries(/*peer_is_at_fault=*/true);  // No receive was there to use.
    return false;
  }
  PostedReceive from_shared;
  const PostedReceive* posted = &from_shared;
  if (shared_ == nullptr) [[likely]] {
    posted = &posted_[taken_ & own_.mask];
  } else if (!shared_->Take(&from_shared)) {
    shared_->AddWaiting(this);
    return false;
  }
  completion->wr_id = posted->wr_id;
  completion->vendor_error = 0;
  completion->queue_pair_number = number_;
  completion->opcode = CompletionOpcode::kRecv;
  completion->flags = 0;
  completion->imm_data = 0;
  completion->byte_length = 0;
  completion->status = Deliver(*posted, entry, completion);
  ++taken_;
  if (completion->status != CompletionStatus::kSuccess) [[unlikely]] {
    RefuseEntries(completion->status == CompletionStatus::kLocalQueuePairOperationError);
  } else {
    ++counters_.messages_received;
  }
  return true;
}

// kLocalQueuePairOperationError: no correct peer writes such an entry.
inline CompletionStatus SoftQueuePair::Deliver(const PostedReceive& posted,
                                               const CompletionEntry& entry,
                                               WorkCompletion* completion) {
  const WireStatus status = ReadOnce(entry.status);
  if (status != WireStatus::kSuccess) [[unlikely]] {
    if (status == WireStatus::kTooLong) return CompletionStatus::kLocalLengthError;
    if (status == WireStatus::kBadReceive) return CompletionStatus::kLocalProtectionError;
    return CompletionStatus::kLocalQueuePairOperationError;
  }
  const uint32_t bytes = ReadOnce(entry.length);
  completion->byte_length = bytes;
  switch (ReadOnce(entry.opcode)) {
    case WireOpcode::kSend:
      break;
    case WireOpcode::kSendWithImm:
      completion->flags = kCompletionWithImm;
      completion->imm_data = ReadOnce(entry.imm_or_key);
      break;
    case WireOpcode::kSendWithInvalidate:
      completion->flags = kCompletionWithInvalidate;
      completion->invalidated_key = ReadOnce(entry.imm_or_key);
      if (!InvalidateForPeer(completion->invalidated_key)) {
        return CompletionStatus::kLocalQueuePairOperationError;
      }
      break;
    case WireOpcode::kWriteWithImm:
      completion->opcode = CompletionOpcode::kRecvWriteWithImm;
      completion->flags = kCompletionWithImm;
      completion->imm_data = ReadOnce(entry.imm_or_key);
      return CompletionStatus::kSuccess;
    default:
      return CompletionStatus::kLocalQueuePairOperationError;
  }
  return DeliverPayload(posted, entry, bytes);
}

inline CompletionStatus SoftQueuePair::DeliverPayload(const PostedReceive& posted,
                                                      const CompletionEntry& entry,
                                                      uint32_t bytes) {
  if (posted.flags == kReceiveBad) [[unlikely]]
    return CompletionStatus::kLocalProtectionError;
  if (bytes > posted.length) [[unlikely]]
    return CompletionStatus::kLocalLengthError;
  if ((ReadOnce(entry.flags) & kEntryInside) != 0) {
    if (bytes > kEntryPayloadBytes) [[unlikely]] {
      return CompletionStatus::kLocalQueuePairOperationError;
    }
    if (posted.sge_count == 1) [[likely]] {
      CopySmall(reinterpret_cast<std::byte*>(posted.sge[0].address), entry.data, bytes);
    } else {
      Scatter(posted, entry.data, bytes);
    }
  } else if (posted.flags == kReceiveStaged) {
    // At most kStagingBytes: so is posted.length.
    Scatter(posted, own_.StagingOf(taken_), bytes);
    counters_.bytes_staged += bytes;
  }
  return CompletionStatus::kSuccess;
}

void SoftQueuePair::RefuseEntries(bool peer_is_at_fault) {
  receives_closed_ = true;
  SoftDevice& device = domain_->device();
  if (peer_is_at_fault) {
    LOG(ERROR) << "queue pair " << number_ << ": the peer wrote an invalid completion entry";
    device.PushAsyncEvent(
        {.type = AsyncEvent::Type::kQueuePairFatal, .queue_pair_number = number_});
  }
  if (shared_ != nullptr) device.control().SendFault(this, Fault::kRequest);
  EnterError();
}

size_t SoftQueuePair::FlushReceives(std::span<WorkCompletion> completions, bool* finished) {
  *finished = false;
  if (!peer_still_ && !(peer_still_ = PeerIsStill())) return 0;
  if (!receives_closed_) {
    const CompletionEntry& entry = own_.completions[taken_ & own_.mask];
    // What was published before the end is delivered first, by the next Poll.
    if (entry.sequence.load(std::memory_order_acquire) == taken_ + 1) return 0;
    receives_closed_ = true;
  }
  size_t count = 0;
  if (shared_ == nullptr) {
    for (; taken_ != posted_count_ && count < completions.size(); ++taken_, ++count) {
      completions[count] = {.wr_id = posted_[taken_ & own_.mask].wr_id,
                            .status = CompletionStatus::kFlushed,
                            .opcode = CompletionOpcode::kRecv,
                            .vendor_error = 0,
                            .byte_length = 0,
                            .imm_data = 0,
                            .queue_pair_number = number_,
                            .flags = 0};
    }
    *finished = taken_ == posted_count_;
  } else {
    *finished = true;
  }
  return count;
}

}  // namespace verbena::soft
