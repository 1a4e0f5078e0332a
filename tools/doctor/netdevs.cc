// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/netdevs.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/dcb.h"
#include "verbena/tools/doctor/ethtool.h"
#include "verbena/tools/doctor/files.h"
#include "verbena/tools/doctor/sysfs_devices.h"

namespace verbena::doctor {
namespace {

// The files of NVIDIA's own driver: one per priority, "1" for on. Notification point and reaction
// point are useless without each other.
std::optional<uint8_t> ReadEcn(const std::string& folder) {
  if (!Exists(folder + "/roce_np") || !Exists(folder + "/roce_rp")) return std::nullopt;
  uint8_t priorities = 0;
  for (int priority = 0; priority < 8; ++priority) {
    bool both = true;
    for (const char* point : {"/roce_np/enable/", "/roce_rp/enable/"}) {
      both = both && ReadNumber(absl::StrCat(folder, point, priority)).value_or(0) != 0;
    }
    if (both) priorities |= static_cast<uint8_t>(1 << priority);
  }
  return priorities;
}

std::optional<IpAddress> AddressOf(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  IpAddress bytes{};
  if (address->sa_family == AF_INET) {
    bytes[10] = bytes[11] = 0xff;
    memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return bytes;
  }
  if (address->sa_family == AF_INET6) {
    memcpy(&bytes[0], &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
    return bytes;
  }
  return std::nullopt;
}

}  // namespace

std::vector<NetdevFacts> ReadSysfsNetdevs(const Roots& roots) {
  std::vector<NetdevFacts> netdevs;
  for (const std::string& name : ListNames(roots.sys + "/class/net")) {
    const std::string folder = absl::StrCat(roots.sys, "/class/net/", name);
    std::optional<uint64_t> mtu = ReadNumber(folder + "/mtu");
    if (!mtu.has_value()) continue;  // bonding_masters is a file among the folders.
    NetdevFacts netdev;
    netdev.name = name;
    netdev.driver = LinkTargetName(folder + "/device/driver");
    netdev.mtu_bytes = static_cast<uint32_t>(*mtu);
    netdev.up = ReadNumber(folder + "/carrier").value_or(0) != 0;
    netdev.ecn_priorities = ReadEcn(folder + "/ecn");
    netdev.counters = ReadCounters(folder + "/statistics", "statistics");
    netdevs.push_back(std::move(netdev));
  }
  return netdevs;
}

void AskNetdev(NetdevFacts* netdev) {
  for (Counter& counter : EthtoolCounters(netdev->name)) {
    netdev->counters.push_back(std::move(counter));
  }
  netdev->global_pause = EthtoolPause(netdev->name);
  ParseDcbAnswer(AskDcb(netdev->name), netdev);
}

std::vector<LocalAddress> ReadAddresses() {
  std::vector<LocalAddress> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    std::optional<IpAddress> address = AddressOf(entry->ifa_addr);
    if (address.has_value()) addresses.push_back({entry->ifa_name, *address});
  }
  freeifaddrs(list);
  return addresses;
}

}  // namespace verbena::doctor
