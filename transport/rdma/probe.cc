// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/probe.h"

#include <errno.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/transitions.h"

namespace verbena::rdma {
namespace {

class Prober {
 public:
  Prober(ibv_pd* domain, ibv_cq* queue, uint32_t sge) : domain_(domain), queue_(queue), sge_(sge) {}

  PairHandle MakePair(uint32_t inline_bytes) const {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {.max_send_wr = 4,
                      .max_recv_wr = 4,
                      .max_send_sge = sge_,
                      .max_recv_sge = sge_,
                      .max_inline_data = inline_bytes};
    errno = 0;
    return PairHandle(ibv_create_qp(domain_, &attributes));
  }

  // The largest limit up to `bound` with which a pair can be made.
  uint32_t InlineMax(uint32_t bound) const {
    uint32_t good = 0;
    uint32_t bad = bound + 1;
    while (bad - good > 1) {
      const uint32_t middle = good + (bad - good) / 2;
      (MakePair(middle) != nullptr ? good : bad) = middle;
    }
    return good;
  }

 private:
  ibv_pd* const domain_;
  ibv_cq* const queue_;
  const uint32_t sge_;
};

bool MakesSharedReceiveQueues(ibv_pd* domain, const ibv_device_attr& attributes) {
  if (attributes.max_srq == 0) return false;
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = 4;
  wanted.attr.max_sge = 1;
  return SharedReceiveHandle(ibv_create_srq(domain, &wanted)) != nullptr;
}

bool MakesWindows(ibv_pd* domain, const ibv_device_attr& attributes) {
  constexpr unsigned kType2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  if ((attributes.device_cap_flags & kType2) == 0) return false;
  return WindowHandle(ibv_alloc_mw(domain, IBV_MW_TYPE_2)) != nullptr;
}

bool TakesEmptyReceive(ibv_qp* pair, uint8_t port) {
  if (MoveToInit(pair, port, /*peer_rights=*/0) != 0) return false;
  ibv_recv_wr empty{};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(pair, &empty, &bad) == 0;
}

}  // namespace

absl::StatusOr<Probed> ProbeDevice(ibv_context* context, const ibv_device_attr& attributes,
                                   uint32_t sge, uint8_t port) {
  errno = 0;
  const DomainHandle domain(ibv_alloc_pd(context));
  if (domain == nullptr) return absl::UnavailableError(Describe("ibv_alloc_pd", errno));
  const QueueHandle queue(ibv_create_cq(context, 16, nullptr, nullptr, 0));
  if (queue == nullptr) return absl::UnavailableError(Describe("ibv_create_cq", errno));
  const Prober prober(domain.get(), queue.get(), sge);
  const PairHandle pair = prober.MakePair(0);
  if (pair == nullptr) {
    return absl::UnavailableError(absl::StrCat("it makes no reliable-connected queue pairs; ",
                                               Describe("ibv_create_qp", errno)));
  }
  return Probed{.inline_bytes_max = prober.InlineMax(kInlineBytesMax),
                .memory_windows = MakesWindows(domain.get(), attributes),
                .shared_receive_queue = MakesSharedReceiveQueues(domain.get(), attributes),
                .empty_receives = TakesEmptyReceive(pair.get(), port)};
}

}  // namespace verbena::rdma
