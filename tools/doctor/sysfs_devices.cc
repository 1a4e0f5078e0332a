// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/sysfs_devices.h"

#include <arpa/inet.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/files.h"
#include "verbena/tools/doctor/pci.h"

namespace verbena::doctor {
namespace {

// "4: ACTIVE" -> "ACTIVE"
std::string AfterColon(const std::string& path) {
  std::string text = ReadText(path).value_or("");
  size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

Transport ReadTransport(const std::string& device) {
  // "1: CA", "4: RNIC": include/rdma/ib_verbs.h, enum rdma_node_type. Others have no reliable
  // connections, or are no end points.
  std::string type = ReadText(device + "/node_type").value_or("");
  if (absl::StartsWith(type, "1:")) return Transport::kInfiniBand;
  if (absl::StartsWith(type, "4:")) return Transport::kIwarp;
  return Transport::kUnknown;
}

LinkLayer ReadLinkLayer(const std::string& port) {
  std::string layer = ReadText(port + "/link_layer").value_or("");
  if (layer == "InfiniBand") return LinkLayer::kInfiniBand;
  if (layer == "Ethernet") return LinkLayer::kEthernet;
  return LinkLayer::kUnknown;
}

GidType ReadGidType(const std::string& port, const std::string& index, LinkLayer link_layer) {
  std::string type = ReadText(port + "/gid_attrs/types/" + index).value_or("");
  if (type == "RoCE v2") return GidType::kRoceV2;
  if (type != "IB/RoCE v1") return GidType::kUnknown;
  return link_layer == LinkLayer::kEthernet ? GidType::kRoceV1 : GidType::kInfiniBand;
}

std::vector<GidFacts> ReadGids(const std::string& port, LinkLayer link_layer) {
  std::vector<GidFacts> gids;
  for (const std::string& index : ListNames(port + "/gids")) {
    GidFacts gid;
    std::string text = ReadText(port + "/gids/" + index).value_or("");
    if (!absl::SimpleAtoi(index, &gid.index)) continue;
    if (inet_pton(AF_INET6, text.c_str(), gid.bytes.data()) != 1) continue;
    if (gid.bytes == IpAddress{}) continue;
    gid.type = ReadGidType(port, index, link_layer);
    gid.netdev = ReadText(port + "/gid_attrs/ndevs/" + index).value_or("");
    gids.push_back(std::move(gid));
  }
  return gids;
}

PortFacts ReadPort(const std::string& folder, uint32_t number) {
  PortFacts port;
  port.number = number;
  port.link_layer = ReadLinkLayer(folder);
  port.state = AfterColon(folder + "/state");
  port.physical_state = AfterColon(folder + "/phys_state");
  port.rate = ReadText(folder + "/rate").value_or("");
  port.gids = ReadGids(folder, port.link_layer);
  port.counters = ReadCounters(folder + "/counters", "counters");
  for (Counter& counter : ReadCounters(folder + "/hw_counters", "hw_counters")) {
    port.counters.push_back(std::move(counter));
  }
  return port;
}

DeviceNode ReadNode(const Roots& roots, const std::string& device) {
  DeviceNode node;
  const std::string verbs = roots.sys + "/class/infiniband_verbs";
  for (const std::string& name : ListNames(verbs)) {
    if (ReadText(absl::StrCat(verbs, "/", name, "/ibdev")) != device) continue;
    node.path = absl::StrCat(roots.dev, "/infiniband/", name);
    node.exists = Exists(node.path);
    node.open_errno = OpenErrno(node.path);
  }
  return node;
}

DeviceFacts ReadDevice(const Roots& roots, const std::string& name) {
  const std::string folder = absl::StrCat(roots.sys, "/class/infiniband/", name);
  DeviceFacts device;
  device.name = name;
  device.transport = ReadTransport(folder);
  device.firmware = ReadText(folder + "/fw_ver").value_or("");
  device.pci = ReadPci(folder + "/device");
  // rxe says which net device it plays on; a NIC has no such file.
  device.software = !device.pci.has_value() || Exists(folder + "/parent");
  device.node = ReadNode(roots, name);
  for (const std::string& number : ListNames(folder + "/ports")) {
    uint32_t parsed = 0;
    if (!absl::SimpleAtoi(number, &parsed)) continue;
    device.ports.push_back(ReadPort(absl::StrCat(folder, "/ports/", number), parsed));
  }
  return device;
}

}  // namespace

std::vector<Counter> ReadCounters(const std::string& folder, const std::string& source) {
  std::vector<Counter> counters;
  for (const std::string& name : ListNames(folder)) {
    if (name == "lifespan") continue;  // Milliseconds for which the kernel keeps the others.
    std::optional<uint64_t> value = ReadNumber(absl::StrCat(folder, "/", name));
    if (value.has_value()) counters.push_back({source, name, *value});
  }
  return counters;
}

std::vector<DeviceFacts> ReadSysfsDevices(const Roots& roots) {
  std::vector<DeviceFacts> devices;
  for (const std::string& name : ListNames(roots.sys + "/class/infiniband")) {
    devices.push_back(ReadDevice(roots, name));
  }
  return devices;
}

}  // namespace verbena::doctor
