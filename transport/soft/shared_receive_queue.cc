// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/shared_receive_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/device_impl.h"
#include "verbena/transport/soft/protection_domain.h"

namespace verbena::soft {

SoftSharedReceiveQueue::SoftSharedReceiveQueue(SoftProtectionDomain* domain,
                                               const SharedReceiveQueueOptions& options)
    : domain_(domain),
      depth_(options.depth),
      sge_max_(options.sge_max),
      capacity_(std::bit_ceil(options.depth)),
      ring_(new PostedReceive[capacity_]) {}

SoftSharedReceiveQueue::~SoftSharedReceiveQueue() {
  CHECK(attached_.empty()) << attached_.size() << " queue pairs outlive their shared receive queue";
  domain_->device().async_events().Forget(this);
  domain_->DropChild();
}

absl::Status SoftSharedReceiveQueue::PostRecv(std::span<const RecvWorkRequest> requests,
                                              size_t* accepted) {
  absl::Status status;
  const uint32_t longest_before = longest_;
  size_t count = 0;
  for (; count < requests.size(); ++count) {
    const RecvWorkRequest& request = requests[count];
    if (request.sg_list.size() > sge_max_) {
      status = absl::InvalidArgumentError(
          absl::StrCat("more scatter/gather entries than sge_max, ", sge_max_));
      break;
    }
    if (available() == depth_) {
      status = absl::ResourceExhaustedError(
          absl::StrCat("the shared receive queue is full: depth is ", depth_));
      break;
    }
    if (available() == 0) longest_ = 0;
    PostedReceive& posted = ring_[tail_++ & (capacity_ - 1)];
    DescribeReceive(domain_->keys(), request, /*staging=*/true, &posted);
    longest_ = std::max(longest_, posted.length);
  }
  if (accepted != nullptr) *accepted = count;
  if (longest_ != longest_before) {
    for (SoftQueuePair* queue_pair : attached_) queue_pair->ShowSharedLength();
  }
  if (count != 0 && !hungry_.empty()) {
    // They may come back to the list while we walk.
    scratch_.swap(hungry_);
    for (SoftQueuePair* queue_pair : scratch_) queue_pair->PublishShared();
    scratch_.clear();
  }
  if (count != 0 && !waiting_.empty()) {
    for (SoftQueuePair* queue_pair : waiting_) queue_pair->recv_queue().WakeIfArmed(true);
    waiting_.clear();
  }
  return status;
}

absl::Status SoftSharedReceiveQueue::ArmLimit(uint32_t limit) {
  if (limit > depth_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a limit of ", limit, " is above the depth, ", depth_));
  }
  limit_ = limit;
  return absl::OkStatus();
}

bool SoftSharedReceiveQueue::Take(PostedReceive* posted) {
  if (available() == 0) return false;
  *posted = ring_[head_++ & (capacity_ - 1)];
  if (available() < limit_) [[unlikely]] {
    limit_ = 0;
    domain_->device().PushAsyncEvent(
        {.type = AsyncEvent::Type::kSharedReceiveQueueLimit, .shared_receive = this});
  }
  return true;
}

void SoftSharedReceiveQueue::AddHungry(SoftQueuePair* queue_pair) {
  if (std::find(hungry_.begin(), hungry_.end(), queue_pair) == hungry_.end()) {
    hungry_.push_back(queue_pair);
  }
}

void SoftSharedReceiveQueue::AddWaiting(SoftQueuePair* queue_pair) {
  if (std::find(waiting_.begin(), waiting_.end(), queue_pair) == waiting_.end()) {
    waiting_.push_back(queue_pair);
  }
}

void SoftSharedReceiveQueue::Detach(SoftQueuePair* queue_pair) {
  std::erase(hungry_, queue_pair);
  std::erase(waiting_, queue_pair);
  std::erase(attached_, queue_pair);
}

}  // namespace verbena::soft
