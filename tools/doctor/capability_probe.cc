// SPDX-License-Identifier: Apache-2.0
//
// Tries what a device can do by making things, and believes a reported bit only where nothing can
// be made.

#include <infiniband/verbs.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/verbs_owner.h"
#include "verbena/tools/doctor/verbs_probe.h"
#include "verbena/transport/endpoint_options.h"

namespace verbena::doctor {
namespace {

using Pd = VerbsOwner<ibv_pd, ibv_dealloc_pd>;
using Cq = VerbsOwner<ibv_cq, ibv_destroy_cq>;
using Qp = VerbsOwner<ibv_qp, ibv_destroy_qp>;
using Srq = VerbsOwner<ibv_srq, ibv_destroy_srq>;
using Mw = VerbsOwner<ibv_mw, ibv_dealloc_mw>;
using Mr = VerbsOwner<ibv_mr, ibv_dereg_mr>;

constexpr size_t kPageBytes = 4096;
// No device is known to take more inline data than this; asking for more only costs time.
constexpr uint32_t kInlineBytesBound = 4096;

Capability Yes(std::string how) { return {Support::kYes, std::move(how)}; }
Capability No(std::string how) { return {Support::kNo, std::move(how)}; }

// How a refusal reads. Some providers set no errno.
std::string Refusal(int error) {
  return error == 0 ? "refused" : absl::StrCat("refused: ", strerror(error));
}

// The largest value in [0, bound] that `accepts`, given that it also accepts all below.
uint32_t LargestAccepted(uint32_t bound, const std::function<bool(uint32_t)>& accepts) {
  if (accepts(bound)) return bound;
  uint32_t accepted = 0;
  uint32_t refused = bound;
  while (refused - accepted > 1) {
    uint32_t middle = accepted + (refused - accepted) / 2;
    (accepts(middle) ? accepted : refused) = middle;
  }
  return accepted;
}

class Prober {
 public:
  Prober(ibv_context* context, const ibv_device_attr_ex& attributes, VerbsFacts* verbs)
      : context_(context), attributes_(attributes), verbs_(*verbs) {}

  void Run() {
    pd_.reset(ibv_alloc_pd(context_));
    const EndpointOptions options;
    const auto depth = static_cast<int>(options.ring_depth + options.send_slots());
    cq_.reset(ibv_create_cq(context_, depth, nullptr, nullptr, 0));
    if (pd_ == nullptr || cq_ == nullptr) {
      verbs_.reliable_connection_errno = errno;
      verbs_.capabilities.reliable_connection = No(absl::StrCat(
          "no ", pd_ == nullptr ? "protection domain" : "completion queue", ": ", Refusal(errno)));
      return;
    }
    ProbeReliableConnection();
    ProbeMemory();
    ProbeSharedReceiveQueue();
    // The rest speaks of queue pairs.
    if (verbs_.capabilities.reliable_connection.support != Support::kYes) return;
    ProbeQueuePairLimits();
    ProbeOperations();
    ProbeAtomics();
    ProbeMemoryWindows();
  }

 private:
  // A queue pair as a connection with default options has it.
  ibv_qp_cap DefaultShape() const {
    const EndpointOptions options;
    ibv_qp_cap shape{};
    shape.max_send_wr = options.send_slots();
    shape.max_recv_wr = options.ring_depth;
    shape.max_send_sge = 1;
    shape.max_recv_sge = 1;
    return shape;
  }

  // Null with errno when refused.
  Qp CreateQp(const ibv_qp_cap& shape) {
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = cq_.get();
    attributes.recv_cq = cq_.get();
    attributes.cap = shape;
    errno = 0;
    return Qp(ibv_create_qp(pd_.get(), &attributes));
  }

  // A queue pair that promises to take these operations (IBV_QP_EX_WITH_...).
  Qp CreateQpWith(uint64_t operations) {
    ibv_qp_init_attr_ex attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = cq_.get();
    attributes.recv_cq = cq_.get();
    attributes.cap = DefaultShape();
    attributes.pd = pd_.get();
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags = operations;
    errno = 0;
    return Qp(ibv_create_qp_ex(context_, &attributes));
  }

  void ProbeReliableConnection() {
    Qp qp = CreateQp(DefaultShape());
    // Without an errno the provider has no such call, or no such type.
    verbs_.reliable_connection_errno = qp == nullptr ? (errno != 0 ? errno : EOPNOTSUPP) : 0;
    verbs_.capabilities.reliable_connection =
        qp != nullptr ? Yes("created a queue pair")
                      : No(absl::StrCat("queue pair ", Refusal(verbs_.reliable_connection_errno)));
  }

  void ProbeQueuePairLimits() {
    auto accepts_with = [this](uint32_t ibv_qp_cap::*field) {
      return [this, field](uint32_t value) {
        ibv_qp_cap shape = DefaultShape();
        shape.*field = value;
        return CreateQp(shape) != nullptr;
      };
    };
    auto sge_bound = static_cast<uint32_t>(std::max(attributes_.orig_attr.max_sge, 1));
    VerbsLimits& limits = verbs_.limits;
    limits.send_sge_max = LargestAccepted(sge_bound, accepts_with(&ibv_qp_cap::max_send_sge));
    limits.recv_sge_max = LargestAccepted(sge_bound, accepts_with(&ibv_qp_cap::max_recv_sge));
    limits.inline_bytes_max =
        LargestAccepted(kInlineBytesBound, accepts_with(&ibv_qp_cap::max_inline_data));
  }

  // A device with the newer way of posting (ibv_wr_post) says at creation which operations it
  // takes.
  Capability ProbePromise(uint64_t operation) {
    if (CreateQpWith(operation) != nullptr) return Yes("created a queue pair for it");
    return No(absl::StrCat("queue pair for it ", Refusal(errno)));
  }

  void ProbeOperations() {
    VerbsCapabilities& can = verbs_.capabilities;
    if (CreateQpWith(IBV_QP_EX_WITH_SEND) != nullptr) {
      can.write_with_imm = ProbePromise(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
      can.send_with_invalidate = ProbePromise(IBV_QP_EX_WITH_SEND_WITH_INV);
      return;
    }
    // Of WRITE with immediate data the transport decides: RFC 5040 (iWARP) has none.
    can.write_with_imm = context_->device->transport_type == IBV_TRANSPORT_IWARP
                             ? No("iWARP has no such operation")
                             : Yes("every InfiniBand or RoCE reliable connection has it");
    can.send_with_invalidate =
        (attributes_.orig_attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0
            ? Yes("device reports memory management extensions")
            : No("device reports no memory management extensions");
  }

  void ProbeAtomics() {
    Capability& atomics = verbs_.capabilities.atomics;
    switch (attributes_.orig_attr.atomic_cap) {
      case IBV_ATOMIC_NONE:
        atomics = No("device reports none");
        return;
      case IBV_ATOMIC_HCA:
        atomics = Yes("device reports them: atomic among operations of this device only");
        return;
      case IBV_ATOMIC_GLOB:
        atomics = Yes("device reports them: atomic with the CPU's too");
        return;
    }
  }

  void ProbeMemoryWindows() {
    errno = 0;
    Mw window(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_2));
    verbs_.capabilities.memory_windows =
        window != nullptr ? Yes("allocated one of type 2") : No(Refusal(errno));
  }

  void ProbeSharedReceiveQueue() {
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = 16;
    attributes.attr.max_sge = 1;
    errno = 0;
    Srq queue(ibv_create_srq(pd_.get(), &attributes));
    verbs_.capabilities.shared_receive_queue =
        queue != nullptr ? Yes("created one") : No(Refusal(errno));
  }

  Capability ProbeAccess(unsigned int access) {
    std::unique_ptr<void, decltype(&free)> page(aligned_alloc(kPageBytes, kPageBytes), &free);
    if (page == nullptr) return {};
    memset(page.get(), 0, kPageBytes);
    errno = 0;
    Mr region(ibv_reg_mr(pd_.get(), page.get(), kPageBytes, IBV_ACCESS_LOCAL_WRITE | access));
    return region != nullptr ? Yes("registered a page") : No(Refusal(errno));
  }

  void ProbeMemory() {
    VerbsCapabilities& can = verbs_.capabilities;
    can.on_demand_paging = ProbeAccess(IBV_ACCESS_ON_DEMAND);
    if (can.on_demand_paging.support == Support::kYes &&
        (attributes_.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_RECV) == 0) {
      can.on_demand_paging = No("device reports it, but not for receives");
    }
    can.relaxed_ordering = ProbeAccess(IBV_ACCESS_RELAXED_ORDERING);
    if (can.relaxed_ordering.support == Support::kYes) {
      can.relaxed_ordering.how = "flag accepted; it is optional, and takes effect on PCI Express";
    }
  }

  ibv_context* context_;
  const ibv_device_attr_ex& attributes_;
  VerbsFacts& verbs_;
  Pd pd_;
  Cq cq_;
};

}  // namespace

void ProbeCapabilities(ibv_context* context, const ibv_device_attr_ex& attributes,
                       VerbsFacts* verbs) {
  Prober(context, attributes, verbs).Run();
}

}  // namespace verbena::doctor
