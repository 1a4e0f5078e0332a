// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/verdict.h"

#include <string.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "verbena/tools/doctor/address.h"
#include "verbena/transport/endpoint_options.h"

namespace verbena::doctor {
namespace {

bool MeansNoPermission(int error) { return error == EACCES || error == EPERM; }

DeviceVerdict JudgeNode(const DeviceFacts& device, const HostFacts& host) {
  if (!host.uverbs_module) {
    return {Reason::kNoVerbsModule, "the kernel module ib_uverbs is not loaded"};
  }
  if (!device.node.exists) {
    return {Reason::kNoDeviceNode,
            host.device_folder
                ? absl::StrCat(
                      device.node.path.empty() ? "its file in /dev/infiniband" : device.node.path,
                      " is missing")
                : "/dev/infiniband is missing"};
  }
  if (MeansNoPermission(device.node.open_errno)) {
    return {Reason::kNoPermission,
            absl::StrCat(device.node.path, ": ", strerror(device.node.open_errno))};
  }
  if (device.node.open_errno != 0) {
    return {Reason::kOpenFailed,
            absl::StrCat(device.node.path, ": ", strerror(device.node.open_errno))};
  }
  return {};
}

DeviceVerdict JudgeVerbs(const DeviceFacts& device, const HostFacts& host) {
  const VerbsFacts& verbs = device.verbs;
  if (!verbs.listed) {
    return {Reason::kNoProvider, "libibverbs finds no provider library for this device"};
  }
  if (!verbs.opened) {
    return {MeansNoPermission(verbs.open_errno) ? Reason::kNoPermission : Reason::kOpenFailed,
            absl::StrCat("ibv_open_device: ", strerror(verbs.open_errno))};
  }
  if (ConnectionsByMemlock(host) == 0) {
    return {Reason::kNoMemory,
            absl::StrCat("the limit of locked memory, ", host.memlock_bytes,
                         " bytes, is below the ", ConnectionBytes(), " of one connection")};
  }
  const Capability& connection = verbs.capabilities.reliable_connection;
  if (connection.support != Support::kYes) {
    const bool memory = verbs.reliable_connection_errno == ENOMEM;
    return {memory ? Reason::kNoMemory : Reason::kNoReliableConnection,
            absl::StrCat("no reliable connection: ", connection.how)};
  }
  return {};
}

DeviceVerdict JudgePorts(const DeviceFacts& device) {
  std::vector<std::string> states;
  for (const PortFacts& port : device.ports) {
    if (port.state == "ACTIVE") return {};
    states.push_back(absl::StrCat("port ", port.number, " is ", port.state,
                                  port.physical_state.empty() ? "" : ", ", port.physical_state));
  }
  return {Reason::kPortDown, states.empty() ? "it has no port" : absl::StrJoin(states, "; ")};
}

// All net devices of its GIDs are known by name, and none is here.
bool IsElsewhere(const DeviceFacts& device, const Facts& facts) {
  bool elsewhere = false;
  for (const PortFacts& port : device.ports) {
    for (const GidFacts& gid : port.gids) {
      if (gid.netdev.empty()) continue;
      if (IsHere(gid.netdev, facts)) return false;
      elsewhere = true;
    }
  }
  return elsewhere;
}

DeviceVerdict JudgeConnecting(const DeviceFacts& device, const Facts& facts, Family family) {
  const DeviceNode& manager = facts.host.connection_manager;
  if (!manager.exists || manager.open_errno != 0) {
    return {
        Reason::kNoConnectionManager,
        absl::StrCat(manager.path, manager.exists ? absl::StrCat(": ", strerror(manager.open_errno))
                                                  : " is missing")};
  }
  std::vector<std::string> addresses;
  for (const AddressRoute& route : RoutesTo(device, facts, family)) {
    addresses.push_back(ToText(route.address));
  }
  if (addresses.empty() && IsElsewhere(device, facts)) {
    return {Reason::kOtherNamespace, absl::StrCat("its net device ", NetdevName(device),
                                                  " is in another network namespace")};
  }
  if (addresses.empty()) {
    return {Reason::kNoAddress, absl::StrCat("no ",
                                             family == Family::kIpv4   ? "IPv4"
                                             : family == Family::kIpv6 ? "IPv6"
                                                                       : "IP",
                                             " address of this network namespace leads to it")};
  }
  return {Reason::kUsable, absl::StrCat("by ", absl::StrJoin(addresses, ", "))};
}

DeviceVerdict JudgeDevice(const DeviceFacts& device, const Facts& facts, Family family) {
  for (const DeviceVerdict& verdict :
       {JudgeNode(device, facts.host), JudgeVerbs(device, facts.host), JudgePorts(device)}) {
    if (verdict.reason != Reason::kUsable) return verdict;
  }
  return JudgeConnecting(device, facts, family);
}

}  // namespace

Verdict Judge(const Facts& facts, Family family) {
  Verdict verdict;
  if (facts.devices.empty()) {
    const bool module = facts.host.uverbs_module;
    verdict.reason = module ? Reason::kNoDevice : Reason::kNoVerbsModule;
    verdict.detail = module
                         ? "the kernel has verbs (ib_uverbs), but no RDMA device"
                         : "the kernel module ib_uverbs is not loaded, and there is no RDMA device";
    return verdict;
  }
  for (const DeviceFacts& device : facts.devices) {
    verdict.devices.push_back(JudgeDevice(device, facts, family));
    const DeviceVerdict& judged = verdict.devices.back();
    if (verdict.devices.size() > 1 && judged.reason <= verdict.reason) continue;
    verdict.reason = judged.reason;
    verdict.detail = absl::StrCat(device.name, ": ", judged.detail);
  }
  return verdict;
}

const char* Name(Reason reason) {
  switch (reason) {
    case Reason::kNoVerbsModule:
      return "no_verbs_module";
    case Reason::kNoDevice:
      return "no_device";
    case Reason::kNoDeviceNode:
      return "no_device_node";
    case Reason::kNoPermission:
      return "no_permission";
    case Reason::kNoProvider:
      return "no_provider";
    case Reason::kOpenFailed:
      return "open_failed";
    case Reason::kNoReliableConnection:
      return "no_reliable_connection";
    case Reason::kNoMemory:
      return "no_memory";
    case Reason::kPortDown:
      return "port_down";
    case Reason::kNoConnectionManager:
      return "no_connection_manager";
    case Reason::kOtherNamespace:
      return "other_namespace";
    case Reason::kNoAddress:
      return "no_address";
    case Reason::kUsable:
      return "usable";
  }
  return "unknown";
}

uint64_t ConnectionBytes() {
  const EndpointOptions options;
  const uint64_t slots = uint64_t{options.ring_depth} + options.send_slots();
  return slots * (options.slot_bytes + kSlotColourBytes);
}

uint64_t ConnectionsByMemlock(const HostFacts& host) {
  if (host.memlock_exempt || host.memlock_bytes == kUnlimited) return kUnlimited;
  return host.memlock_bytes / ConnectionBytes();
}

std::vector<AddressRoute> RoutesTo(const DeviceFacts& device, const Facts& facts, Family family) {
  std::vector<AddressRoute> routes;
  for (const AddressRoute& route : facts.host.routes) {
    const bool fits = family == Family::kAny || IsIpv4(route.address) == (family == Family::kIpv4);
    if (fits && route.device == device.name) routes.push_back(route);
  }
  return routes;
}

}  // namespace verbena::doctor
