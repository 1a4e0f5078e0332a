// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/gid_choice.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/address.h"

namespace verbena::doctor {
namespace {

// The net device of this namespace that has the address; of several, the wanted one.
std::string OwnerOf(const IpAddress& address, const std::string& wanted, const Facts& facts) {
  std::string owner;
  for (const LocalAddress& local : facts.host.addresses) {
    if (local.address != address) continue;
    if (owner.empty() || local.netdev == wanted) owner = local.netdev;
  }
  return owner;
}

bool FamilyFits(const IpAddress& address, Family family) {
  return family == Family::kAny || IsIpv4(address) == (family == Family::kIpv4);
}

const char* VersionName(GidType type) {
  return type == GidType::kRoceV2   ? "RoCE v2"
         : type == GidType::kRoceV1 ? "RoCE v1"
                                    : "unknown type";
}

GidOpinion JudgeRoce(const GidFacts& gid, const Facts& facts, Family family) {
  if (gid.type != GidType::kRoceV2 && gid.type != GidType::kRoceV1) return {false, "unknown type"};
  if (gid.netdev.empty()) return {false, "no net device behind it"};
  if (!IsHere(gid.netdev, facts)) {
    return {false, absl::StrCat(gid.netdev, " is not in this network namespace")};
  }
  if (!FamilyFits(gid.bytes, family)) {
    return {false, family == Family::kIpv4 ? "not IPv4" : "not IPv6"};
  }
  std::string owner = OwnerOf(gid.bytes, gid.netdev, facts);
  if (IsLinkLocal(gid.bytes)) {
    // The device's own comes from its MAC address and need not be one of the interface.
    return {true, absl::StrCat(VersionName(gid.type), ", link-local, ", gid.netdev)};
  }
  if (owner.empty()) {
    return {false, "no interface of this network namespace has this address"};
  }
  return {true, absl::StrCat(VersionName(gid.type), ", ", IsIpv4(gid.bytes) ? "IPv4" : "IPv6",
                             " address of ", owner)};
}

// Smaller is better.
auto Rank(const GidFacts& gid) {
  return std::tuple(gid.type != GidType::kRoceV2, IsLinkLocal(gid.bytes), !IsIpv4(gid.bytes),
                    gid.bytes);
}

// What the best has and the next best has not.
std::string Reason(const std::vector<GidFacts>& gids, const GidChoice& choice) {
  const GidFacts& best = gids[*choice.chosen];
  const GidFacts* next = nullptr;
  for (size_t i = 0; i < gids.size(); ++i) {
    if (i == *choice.chosen || !choice.opinions[i].usable) continue;
    if (next == nullptr || Rank(gids[i]) < Rank(*next)) next = &gids[i];
  }
  if (next == nullptr) return "the only usable one";
  if (best.type != next->type) return "RoCE v2 goes before v1";
  if (IsLinkLocal(best.bytes) != IsLinkLocal(next->bytes)) {
    return "an address goes before a link-local one";
  }
  if (IsIpv4(best.bytes) != IsIpv4(next->bytes)) return "IPv4 goes before IPv6";
  return "others are as good: a connection uses that of its own address";
}

GidChoice ChooseRoce(const PortFacts& port, const Facts& facts, Family family) {
  GidChoice choice;
  for (const GidFacts& gid : port.gids) choice.opinions.push_back(JudgeRoce(gid, facts, family));
  for (size_t i = 0; i < port.gids.size(); ++i) {
    if (!choice.opinions[i].usable) continue;
    if (!choice.chosen.has_value() || Rank(port.gids[i]) < Rank(port.gids[*choice.chosen])) {
      choice.chosen = i;
    }
  }
  if (choice.chosen.has_value()) {
    choice.why = Reason(port.gids, choice);
  } else {
    choice.why = port.gids.empty() ? "the port has no GID" : "none is usable";
  }
  return choice;
}

GidChoice ChooseInfiniBand(const PortFacts& port) {
  GidChoice choice;
  choice.opinions.assign(port.gids.size(), {true, "InfiniBand"});
  auto smaller = [](const GidFacts& a, const GidFacts& b) {
    return std::tuple(IsLinkLocal(a.bytes), a.bytes) < std::tuple(IsLinkLocal(b.bytes), b.bytes);
  };
  auto best = std::min_element(port.gids.begin(), port.gids.end(), smaller);
  if (best != port.gids.end()) choice.chosen = static_cast<size_t>(best - port.gids.begin());
  choice.why = "within a subnet the LID addresses the port; between subnets its GID does";
  return choice;
}

}  // namespace

GidChoice ChooseGid(const DeviceFacts& device, const PortFacts& port, const Facts& facts,
                    Family family) {
  if (device.transport == Transport::kIwarp) {
    GidChoice choice;
    choice.opinions.assign(port.gids.size(), {false, "made from the MAC address"});
    choice.why = "iWARP connects by IP address";
    return choice;
  }
  if (port.link_layer == LinkLayer::kInfiniBand) return ChooseInfiniBand(port);
  return ChooseRoce(port, facts, family);
}

bool IsHere(const std::string& netdev, const Facts& facts) {
  return std::any_of(facts.netdevs.begin(), facts.netdevs.end(),
                     [&](const NetdevFacts& known) { return known.name == netdev; });
}

std::string NetdevName(const DeviceFacts& device) {
  for (const PortFacts& port : device.ports) {
    for (const GidFacts& gid : port.gids) {
      if (!gid.netdev.empty()) return gid.netdev;
    }
  }
  return "";
}

}  // namespace verbena::doctor
