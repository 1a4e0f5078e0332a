// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a queue pair.

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/posting.h"
#include "verbena/transport/rdma/protection_domain.h"
#include "verbena/transport/rdma/queue_pair.h"

namespace verbena::rdma {

absl::Status RdmaQueuePair::CheckSend(const SendWorkRequest& request) const {
  if (sends_.full()) {
    return absl::ResourceExhaustedError(absl::StrCat("the send queue is full, all of send_depth, ",
                                                     options_.send_depth, ": poll, then post"));
  }
  const Capabilities& can = device_->capabilities();
  bool supported = true;
  switch (request.opcode) {
    case Opcode::kSend:
    case Opcode::kWrite:
    case Opcode::kRead:
      break;
    case Opcode::kWriteWithImm:
      supported = can.write_with_imm;
      break;
    case Opcode::kSendWithImm:
      supported = can.send_with_imm;
      break;
    case Opcode::kSendWithInvalidate:
      supported = can.send_with_invalidate;
      break;
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAndAdd:
      supported = can.atomics;
      if (supported && (request.sg_list.size() != 1 || request.sg_list[0].length != 8)) {
        return absl::InvalidArgumentError("an atomic needs one piece of 8 bytes");
      }
      break;
    case Opcode::kLocalInvalidate:
    case Opcode::kBindWindow:
      supported = can.memory_windows;
      break;
    default:
      supported = false;
  }
  if (!supported) {
    return absl::UnimplementedError(
        absl::StrCat(can.device, " does not do opcode ", static_cast<uint32_t>(request.opcode)));
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
  const auto pieces =
      request.opcode == Opcode::kRead ? domain_->NotEmpty(request.sg_list) : request.sg_list;
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
      work->bind_mw.bind_info = {.mr = static_cast<const RdmaMemoryRegion*>(bind.region)->handle(),
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
  if (state == QueuePairState::kError && IsFlushedHere()) [[unlikely]] {
    return PostAll(requests, accepted,
                   [this](auto rest, absl::Status* status) { return KeepSends(rest, status); });
  }
  return PostAll(requests, accepted,
                 [this](auto rest, absl::Status* status) { return PostChunk(rest, status); });
}

size_t RdmaQueuePair::KeepSends(std::span<const SendWorkRequest> requests, absl::Status* status) {
  const size_t count = Keep(
      requests, sends_, [this](const auto& request) { return CheckSend(request); }, status);
  MoveToError();
  SweepLater();
  return count;
}

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
    count = TakeBackRefused(sends_, works, bad, count);
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

}  // namespace verbena::rdma
