// SPDX-License-Identifier: Apache-2.0

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include <memory>
#include <utility>

#include "verbena/tools/doctor/address.h"
#include "verbena/tools/doctor/verbs_owner.h"
#include "verbena/tools/doctor/verbs_probe.h"

namespace verbena::doctor {
namespace {

sockaddr_storage SocketAddress(const IpAddress& address) {
  sockaddr_storage storage{};
  if (IsIpv4(address)) {
    auto* ipv4 = reinterpret_cast<sockaddr_in*>(&storage);
    ipv4->sin_family = AF_INET;
    memcpy(&ipv4->sin_addr, &address[12], 4);
  } else {
    auto* ipv6 = reinterpret_cast<sockaddr_in6*>(&storage);
    ipv6->sin6_family = AF_INET6;
    memcpy(&ipv6->sin6_addr, &address[0], 16);
  }
  return storage;
}

// The device that the connection manager takes for an address; empty when none.
std::string DeviceOf(const IpAddress& address) {
  rdma_cm_id* created = nullptr;
  if (rdma_create_id(nullptr, &created, nullptr, RDMA_PS_TCP) != 0) return "";
  VerbsOwner<rdma_cm_id, rdma_destroy_id> id(created);
  sockaddr_storage bound = SocketAddress(address);
  if (rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&bound)) != 0) return "";
  return id->verbs == nullptr ? "" : ibv_get_device_name(id->verbs->device);
}

}  // namespace

std::vector<AddressRoute> ProbeAddresses(const std::vector<LocalAddress>& addresses) {
  std::vector<AddressRoute> routes;
  for (const LocalAddress& local : addresses) {
    // An IPv6 link-local address is none without its interface.
    const bool needs_interface = IsLinkLocal(local.address) && !IsIpv4(local.address);
    if (needs_interface || IsLoopback(local.address)) continue;
    routes.push_back({local.netdev, local.address, DeviceOf(local.address)});
  }
  return routes;
}

}  // namespace verbena::doctor
