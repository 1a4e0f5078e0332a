// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/shared_receive_queue.h"

#include <errno.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/protection_domain.h"
#include "verbena/transport/rdma/work_id.h"

namespace verbena::rdma {

RdmaSharedReceiveQueue::RdmaSharedReceiveQueue(RdmaProtectionDomain* domain,
                                               const SharedReceiveQueueOptions& options)
    : domain_(domain),
      device_(domain->device()),
      depth_(options.depth),
      sge_max_(options.sge_max),
      user_ids_(options.depth) {
  for (uint32_t slot = 0; slot < depth_; ++slot) free_slots_.push_back(slot);
}

absl::StatusOr<std::unique_ptr<RdmaSharedReceiveQueue>> RdmaSharedReceiveQueue::Create(
    RdmaProtectionDomain* domain, const SharedReceiveQueueOptions& options) {
  const Capabilities& can = domain->device()->capabilities();
  if (!can.shared_receive_queue) {
    return absl::UnimplementedError(absl::StrCat(can.device, " has no shared receive queues"));
  }
  if (options.depth < 1 || options.depth > can.queue_depth_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "depth is ", options.depth, ": it must be 1 to queue_depth_max, ", can.queue_depth_max));
  }
  if (options.sge_max < 1 || options.sge_max > can.recv_sge_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sge_max is ", options.sge_max, ": it must be 1 to recv_sge_max, ", can.recv_sge_max));
  }
  std::unique_ptr<RdmaSharedReceiveQueue> self(new RdmaSharedReceiveQueue(domain, options));
  ibv_srq_init_attr attributes{};
  attributes.srq_context = self.get();
  attributes.attr.max_wr = options.depth;
  attributes.attr.max_sge = options.sge_max;
  errno = 0;
  self->queue_.reset(ibv_create_srq(domain->handle(), &attributes));
  if (self->queue_ == nullptr) return CreationError("ibv_create_srq", errno);
  absl::StatusOr<uint32_t> number = self->device_->AddSharedReceive(self.get());
  if (!number.ok()) return number.status();
  self->number_ = *number;
  return self;
}

RdmaSharedReceiveQueue::~RdmaSharedReceiveQueue() {
  queue_.reset();  // Waits until its events are acknowledged, and so in the device's queue.
  device_->DropSharedReceive(number_, this);
}

absl::Status RdmaSharedReceiveQueue::PostRecv(std::span<const RecvWorkRequest> requests,
                                              size_t* accepted) {
  std::lock_guard lock(mutex_);
  if (accepted != nullptr) *accepted = 0;
  for (const RecvWorkRequest& request : requests) {
    if (absl::Status status = PostOneLocked(request); !status.ok()) return status;
    if (accepted != nullptr) ++*accepted;
  }
  return absl::OkStatus();
}

absl::Status RdmaSharedReceiveQueue::PostOneLocked(const RecvWorkRequest& request) {
  if (request.sg_list.size() > sge_max_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a receive of ", request.sg_list.size(), " pieces; this queue takes sge_max, ", sge_max_));
  }
  if (free_slots_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", depth_, " receives of the shared queue are posted: poll first"));
  }
  const uint32_t slot = free_slots_.back();
  const std::span<const ScatterGatherEntry> pieces = domain_->NotEmpty(request.sg_list);
  ibv_recv_wr work{};
  work.wr_id =
      WorkId{.kind = WorkId::Kind::kSharedRecv, .owner = number_, .sequence = slot}.Encode();
  work.sg_list = AsSge(pieces);
  work.num_sge = static_cast<int>(pieces.size());
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_srq_recv(queue_.get(), &work, &bad);
  if (result != 0) return PostError("ibv_post_srq_recv", ErrorOf(result));
  user_ids_[slot] = request.wr_id;
  free_slots_.pop_back();
  return absl::OkStatus();
}

uint64_t RdmaSharedReceiveQueue::Take(uint32_t slot) {
  std::lock_guard lock(mutex_);
  free_slots_.push_back(slot);
  return user_ids_[slot];
}

absl::Status RdmaSharedReceiveQueue::ArmLimit(uint32_t limit) {
  ibv_srq_attr attributes{};
  attributes.srq_limit = limit;
  const int result = ibv_modify_srq(queue_.get(), &attributes, IBV_SRQ_LIMIT);
  if (result != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a limit of ", limit, " is refused; ",
                                                   Describe("ibv_modify_srq", ErrorOf(result))));
  }
  return absl::OkStatus();
}

}  // namespace verbena::rdma
