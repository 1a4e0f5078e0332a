// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a queue pair.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/posting.h"
#include "verbena/transport/rdma/protection_domain.h"
#include "verbena/transport/rdma/queue_pair.h"

namespace verbena::rdma {

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
  const bool in_error = state_.load(std::memory_order_relaxed) == QueuePairState::kError;
  if (in_error && IsFlushedHere()) [[unlikely]] {
    return PostAll(requests, accepted,
                   [this](auto rest, absl::Status* status) { return KeepRecvs(rest, status); });
  }
  absl::Status status = PostAll(requests, accepted, [this](auto rest, absl::Status* refusal) {
    return PostRecvChunk(rest, refusal);
  });
  // rxe looks at the receives of a pair in error only when it is told again.
  if (in_error) [[unlikely]] {
    ModifyToError();
  }
  return status;
}

size_t RdmaQueuePair::KeepRecvs(std::span<const RecvWorkRequest> requests, absl::Status* status) {
  const size_t count = Keep(
      requests, recvs_, [this](const auto& request) { return CheckRecv(request); }, status);
  MoveToError();
  SweepLater();
  return count;
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
    count = TakeBackRefused(recvs_, works, bad, count);
    *status = PostError("ibv_post_recv", ErrorOf(result));
  }
  return count;
}

}  // namespace verbena::rdma
