// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/verbs_probe.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>

#include "verbena/tools/doctor/verbs_owner.h"

namespace verbena::doctor {
namespace {

uint64_t Count(int value) { return value < 0 ? 0 : static_cast<uint64_t>(value); }

// enum ibv_mtu counts powers of two from 256 = 1.
uint32_t MtuBytes(ibv_mtu mtu) {
  return mtu < IBV_MTU_256 || mtu > IBV_MTU_4096 ? 0 : uint32_t{128} << mtu;
}

ibv_context* Open(ibv_device** list, const std::string& name, VerbsFacts* verbs) {
  for (; *list != nullptr; ++list) {
    if (ibv_get_device_name(*list) != name) continue;
    verbs->listed = true;
    errno = 0;
    ibv_context* context = ibv_open_device(*list);
    verbs->open_errno = context == nullptr ? (errno != 0 ? errno : EIO) : 0;
    return context;
  }
  return nullptr;
}

void ReadLimits(const ibv_device_attr& attributes, VerbsLimits* limits) {
  limits->queue_pairs_max = Count(attributes.max_qp);
  limits->queue_depth_max = Count(attributes.max_qp_wr);
  limits->completion_queues_max = Count(attributes.max_cq);
  limits->completion_queue_depth_max = Count(attributes.max_cqe);
  limits->memory_regions_max = Count(attributes.max_mr);
  limits->memory_region_bytes_max = attributes.max_mr_size;
}

void ReadPorts(ibv_context* context, uint8_t ports, VerbsFacts* verbs) {
  for (uint8_t number = 1; number <= ports && number != 0; ++number) {
    ibv_port_attr port{};
    if (ibv_query_port(context, number, &port) != 0) continue;
    verbs->ports.push_back(
        {number, MtuBytes(port.active_mtu), MtuBytes(port.max_mtu), port.max_msg_sz});
  }
}

}  // namespace

VerbsFacts ProbeVerbs(const std::string& device) {
  VerbsFacts verbs;
  VerbsOwner<ibv_device*, ibv_free_device_list> list(ibv_get_device_list(nullptr));
  // Null without ib_uverbs, which is an answer and no error.
  if (list == nullptr) return verbs;
  VerbsOwner<ibv_context, ibv_close_device> context(Open(list.get(), device, &verbs));
  if (context == nullptr) return verbs;
  verbs.opened = true;
  ibv_device_attr_ex attributes{};
  // Falls back to the plain query where the device knows no more.
  if (ibv_query_device_ex(context.get(), nullptr, &attributes) != 0) return verbs;
  verbs.vendor_id = attributes.orig_attr.vendor_id;
  ReadLimits(attributes.orig_attr, &verbs.limits);
  ReadPorts(context.get(), attributes.orig_attr.phys_port_cnt, &verbs);
  ProbeCapabilities(context.get(), attributes, &verbs);
  return verbs;
}

ForkState ProbeFork() {
  switch (ibv_is_fork_initialized()) {
    case IBV_FORK_DISABLED:
      return ForkState::kUnsafe;
    case IBV_FORK_ENABLED:
      return ForkState::kEnabled;
    case IBV_FORK_UNNEEDED:
      return ForkState::kUnneeded;
  }
  return ForkState::kUnknown;
}

}  // namespace verbena::doctor
