// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/completion_queue.h"

#include <arpa/inet.h>
#include <errno.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/rdma/completion_channel.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/queue_pair.h"
#include "verbena/transport/rdma/shared_receive_queue.h"

namespace verbena::rdma {
namespace {

// Bit 2 of the flags is "IP checksum good" in user space, which a reliable connection never has.
// rxe before Linux 6.2 hands the kernel's number for "with invalidate" through, and that is bit 2.
constexpr unsigned kWithInvalidate = IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;

}  // namespace

absl::StatusOr<std::unique_ptr<RdmaCompletionQueue>> RdmaCompletionQueue::Create(
    RdmaDevice* device, uint32_t depth, RdmaCompletionChannel* channel) {
  std::unique_ptr<RdmaCompletionQueue> self(new RdmaCompletionQueue(device, depth, channel));
  errno = 0;
  self->queue_.reset(ibv_create_cq(device->context(), static_cast<int>(depth), self.get(),
                                   channel == nullptr ? nullptr : channel->handle(), 0));
  if (self->queue_ == nullptr) return CreationError("ibv_create_cq", errno);
  device->AddQueue(self.get());
  return self;
}

RdmaCompletionQueue::~RdmaCompletionQueue() {
  device_->DropQueue(this);
  queue_.reset();  // While the rest lives: an event about it may be under way until now.
  CHECK_EQ(reserved_, 0u) << "a queue pair outlives its completion queue";
}

size_t RdmaCompletionQueue::Poll(std::span<WorkCompletion> completions) {
  size_t count = kept_.empty() ? 0 : TakeKept(kept_, completions);
  while (count < completions.size()) {
    std::array<ibv_wc, kPollChunk> entries;
    const size_t wanted = std::min(entries.size(), completions.size() - count);
    const int got = ibv_poll_cq(queue_.get(), static_cast<int>(wanted), entries.data());
    if (got < 0) [[unlikely]] {
      MarkBroken(absl::UnavailableError(Describe("ibv_poll_cq", ErrorOf(got))));
      break;
    }
    for (int i = 0; i < got; ++i) {
      if (Translate(entries[i], &completions[count])) ++count;
    }
    if (static_cast<size_t>(got) < wanted) {
      if (!to_sweep_.empty() || !flushed_.empty()) [[unlikely]] {
        for (RdmaQueuePair* pair : std::exchange(to_sweep_, {})) pair->FlushWhatIsLost(*this);
        count += TakeKept(flushed_, completions.subspan(count));
      }
      break;
    }
  }
  return count;
}

size_t RdmaCompletionQueue::TakeKept(std::deque<ibv_wc>& kept,
                                     std::span<WorkCompletion> completions) {
  size_t count = 0;
  while (count < completions.size() && !kept.empty()) {
    if (Translate(kept.front(), &completions[count])) ++count;
    kept.pop_front();
  }
  return count;
}

void RdmaCompletionQueue::PushFlushed(WorkId id, uint32_t pair_number) {
  ibv_wc entry{};
  entry.wr_id = id.Encode();
  entry.status = IBV_WC_WR_FLUSH_ERR;
  entry.qp_num = pair_number;
  flushed_.push_back(entry);
}

void RdmaCompletionQueue::SweepLater(RdmaQueuePair* pair) {
  if (std::ranges::find(to_sweep_, pair) == to_sweep_.end()) to_sweep_.push_back(pair);
  if (std::exchange(armed_, false)) channel_->Signal();
}

bool RdmaCompletionQueue::Translate(const ibv_wc& from, WorkCompletion* to) {
  const WorkId id = WorkId::Decode(from.wr_id);
  const auto status = static_cast<CompletionStatus>(from.status);
  RdmaQueuePair* pair = nullptr;
  if (id.kind == WorkId::Kind::kSharedRecv) {
    RdmaSharedReceiveQueue* shared = device_->FindSharedReceive(id.owner);
    if (shared == nullptr) return false;
    to->wr_id = shared->Take(id.sequence);
    pair = device_->FindPair(from.qp_num);
    if (pair == nullptr) return false;  // The receive is used up, and its pair is gone.
    pair->OnSharedReceive(status);
  } else {
    const Place& place = places_[id.owner];
    if (place.pair == nullptr || place.generation != id.generation) return false;
    pair = place.pair;
    // Flushed here already, since it seemed lost.
    if (!pair->IsOutstanding(id)) [[unlikely]] {
      return false;
    }
    to->wr_id = id.kind == WorkId::Kind::kSend ? pair->RetireSend(id.sequence, status)
                                               : pair->RetireRecv(id.sequence, status);
  }
  to->status = status;
  to->opcode = static_cast<CompletionOpcode>(from.opcode);
  to->vendor_error = from.vendor_err;
  to->byte_length = from.byte_len;
  to->queue_pair_number = from.qp_num;
  to->flags = 0;
  to->imm_data = 0;
  if (status == CompletionStatus::kSuccess && id.kind != WorkId::Kind::kSend) {
    if ((from.wc_flags & IBV_WC_WITH_IMM) != 0) {
      to->flags = kCompletionWithImm;
      to->imm_data = ntohl(from.imm_data);
    } else if ((from.wc_flags & kWithInvalidate) != 0) {
      to->flags = kCompletionWithInvalidate;
      to->invalidated_key = from.invalidated_rkey;
    }
  }
  return true;
}

absl::Status RdmaCompletionQueue::Arm(bool solicited_only) {
  if (channel_ == nullptr) {
    return absl::FailedPreconditionError("this completion queue was made without a channel");
  }
  const int result = ibv_req_notify_cq(queue_.get(), solicited_only ? 1 : 0);
  if (result != 0) return absl::UnavailableError(Describe("ibv_req_notify_cq", ErrorOf(result)));
  armed_ = true;
  return absl::OkStatus();
}

// ---- Attached queue pairs ----

absl::Status RdmaCompletionQueue::Reserve(uint32_t entries, std::string_view option) {
  if (entries > depth_ - reserved_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the completion queue has ", depth_, " entries, of which ", reserved_,
                     " are promised to other queue pairs: no room for ",
                     absl::string_view(option.data(), option.size()), " = ", entries,
                     "; make a deeper queue or fewer pairs on it"));
  }
  reserved_ += entries;
  return absl::OkStatus();
}

WorkId RdmaCompletionQueue::Attach(RdmaQueuePair* pair) {
  if (free_places_.empty()) {
    free_places_.push_back(static_cast<uint32_t>(places_.size()));
    places_.emplace_back();
  }
  const uint32_t index = free_places_.back();
  free_places_.pop_back();
  Place& place = places_[index];
  place.pair = pair;
  place.generation = (place.generation + 1) % WorkId::kGenerations;
  return {.owner = index, .generation = place.generation};
}

void RdmaCompletionQueue::Detach(WorkId place, uint32_t pair_number) {
  std::erase(to_sweep_, places_[place.owner].pair);
  places_[place.owner].pair = nullptr;
  free_places_.push_back(place.owner);
  // The room that the pair had reserved goes to others now, so nothing of it may stay behind.
  ibv_wc entry;
  while (ibv_poll_cq(queue_.get(), 1, &entry) == 1) kept_.push_back(entry);
  const auto gone = [&](const ibv_wc& kept) { return BelongsTo(kept, place, pair_number); };
  std::erase_if(kept_, gone);
  std::erase_if(flushed_, gone);
}

bool RdmaCompletionQueue::BelongsTo(const ibv_wc& entry, WorkId place, uint32_t pair_number) {
  const WorkId id = WorkId::Decode(entry.wr_id);
  if (id.kind != WorkId::Kind::kSharedRecv) {
    return id.owner == place.owner && id.generation == place.generation;
  }
  if (entry.qp_num != pair_number) return false;
  if (RdmaSharedReceiveQueue* shared = device_->FindSharedReceive(id.owner)) {
    shared->Take(id.sequence);
  }
  return true;
}

// ---- Broken queues ----

void RdmaCompletionQueue::MarkBroken(absl::Status why) {
  std::lock_guard lock(mutex_);
  if (broken_status_.ok()) {
    LOG(ERROR) << "a completion queue is broken: " << why;
    broken_status_ = std::move(why);
  }
  broken_.store(true, std::memory_order_release);
}

absl::Status RdmaCompletionQueue::status() const {
  if (!broken_.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  return broken_status_;
}

}  // namespace verbena::rdma
