// SPDX-License-Identifier: Apache-2.0
//
// What a network has to do for RoCE v2, and what addresses have to look like.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/address.h"
#include "verbena/tools/doctor/advice.h"
#include "verbena/tools/doctor/counter_meaning.h"
#include "verbena/tools/doctor/gid_choice.h"

namespace verbena::doctor {
namespace {

// RoCE's path MTU is a power of two below the net device's, which also carries up to about 100
// bytes of headers.
constexpr uint32_t kPathMtuBytes = 4096;
constexpr uint32_t kNetdevMtuBytes = 4200;

bool IsRoce(const DeviceFacts& device, const PortFacts& port) {
  return device.transport == Transport::kInfiniBand && port.link_layer == LinkLayer::kEthernet;
}

std::string Subject(const DeviceFacts& device, const PortFacts& port) {
  return absl::StrCat(device.name, " port ", port.number);
}

// Where the recipes below put RDMA: DSCP 26 and priority 3, which most switches' templates for RoCE
// use too. ToS is DSCP x 4, plus 2 for "understands congestion marks".
void AdviseOnFlowControl(const DeviceFacts& device, const PortFacts& port,
                         const NetdevFacts& netdev, std::vector<Advice>* advice) {
  if (netdev.pfc_priorities.value_or(0) != 0) return;
  const bool paused = netdev.global_pause.value_or(false);
  std::string what =
      !netdev.pfc_priorities.has_value()
          ? absl::StrCat("Whether ", netdev.name,
                         " has priority flow control cannot be read (a virtual function, or no DCB "
                         "in the driver)")
          : absl::StrCat("Priority flow control is off on ", netdev.name);
  if (paused) what += "; pause frames for all priorities are on";
  advice->push_back(
      {netdev.pfc_priorities.has_value() && !paused ? Severity::kRisk : Severity::kNote,
       "flow_control",
       Subject(device, port),
       what,
       "RoCE takes a lost packet badly: a gap is sent again from the start of the gap, a lost tail "
       "waits for a timeout. A lossless priority on NIC and every switch port on the way avoids "
       "the "
       "loss; pausing all priorities does it at the price of every other flow.",
       {absl::StrCat("dcb pfc set dev ", netdev.name, " prio-pfc all:off 3:on"),
        absl::StrCat("dcb app add dev ", netdev.name, " dscp-prio 26:3"),
        absl::StrCat("mlnx_qos -i ", netdev.name, " --trust dscp --pfc 0,0,0,1,0,0,0,0"),
        absl::StrCat("dcb pfc show dev ", netdev.name)}});
}

void AdviseOnCongestion(const DeviceFacts& device, const PortFacts& port, const NetdevFacts& netdev,
                        std::vector<Advice>* advice) {
  if (netdev.ecn_priorities.value_or(0) != 0) return;
  const bool known = netdev.ecn_priorities.has_value();
  advice->push_back(
      {known ? Severity::kRisk : Severity::kNote,
       "congestion_notification",
       Subject(device, port),
       known
           ? absl::StrCat("Congestion notification (ECN, DCQCN) is off on ", netdev.name)
           : absl::StrCat("Whether ", netdev.name,
                          " slows down on congestion (ECN, DCQCN) cannot be read from the driver"),
       "Flow control alone spreads a traffic jam through the network. With congestion notification "
       "switches mark packets, the receiver tells, and the sender slows down. Packets take part "
       "only "
       "if their traffic class says so, and switches have to mark that class.",
       {absl::StrCat("for p in roce_np roce_rp; do echo 1 > /sys/class/net/", netdev.name,
                     "/ecn/$p/enable/3; done"),
        absl::StrCat("mkdir -p /sys/kernel/config/rdma_cm/", device.name),
        absl::StrCat("echo 106 > /sys/kernel/config/rdma_cm/", device.name, "/ports/", port.number,
                     "/default_roce_tos   # DSCP 26, ECN")}});
}

void AdviseOnMtu(const DeviceFacts& device, const PortFacts& port, const Facts& facts,
                 std::vector<Advice>* advice) {
  if (port.state != "ACTIVE" || port.mtu_active_bytes == 0) return;
  const uint32_t possible = std::min(kPathMtuBytes, port.mtu_max_bytes);
  if (port.mtu_active_bytes >= possible) return;
  std::string netdev = "NETDEV";
  std::string because;
  for (const NetdevFacts* below : NetdevsOf(device, port, facts)) {
    netdev = below->name;
    because = absl::StrCat(": the MTU of ", netdev, " is ", below->mtu_bytes);
    if (below->mtu_bytes < kNetdevMtuBytes) break;
  }
  advice->push_back(
      {Severity::kSlow,
       "mtu_low",
       Subject(device, port),
       absl::StrCat("RDMA packets carry ", port.mtu_active_bytes, " bytes and could carry ",
                    possible, because),
       "Each packet costs the NIC and the switches the same, however little it carries. Both ends "
       "have to agree, and the switches need room for the larger frames.",
       {absl::StrCat("ip link set dev ", netdev, " mtu ", kNetdevMtuBytes,
                     "   # or 9000, on both ends")}});
}

void AdviseOnGids(const DeviceFacts& device, const PortFacts& port, const Facts& facts,
                  std::vector<Advice>* advice) {
  GidChoice choice = ChooseGid(device, port, facts, Family::kAny);
  if (!choice.chosen.has_value()) return;
  const GidFacts& gid = port.gids[*choice.chosen];
  if (gid.type == GidType::kRoceV1) {
    advice->push_back({Severity::kRisk,
                       "roce_v1",
                       Subject(device, port),
                       "Only GIDs of RoCE v1 are usable",
                       "RoCE v1 is not routed, and does not reach a peer that speaks v2.",
                       {absl::StrCat("ls /sys/kernel/config/rdma_cm/", device.name),
                        absl::StrCat("echo 'RoCE v2' > /sys/kernel/config/rdma_cm/", device.name,
                                     "/ports/", port.number, "/default_roce_mode")}});
  }
  // No address at all is a verdict already.
  if (IsLinkLocal(gid.bytes) && !RoutesTo(device, facts, Family::kAny).empty()) {
    advice->push_back({Severity::kRisk,
                       "address_link_local",
                       Subject(device, port),
                       absl::StrCat(gid.netdev, " has no address but a link-local one"),
                       "It is not routed, and changes with the hardware.",
                       {absl::StrCat("ip address add 10.0.0.1/24 dev ", gid.netdev)}});
  }
}

}  // namespace

void AdviseOnNetwork(const Facts& facts, std::vector<Advice>* advice) {
  for (const DeviceFacts& device : facts.devices) {
    for (const PortFacts& port : device.ports) {
      if (!IsRoce(device, port)) continue;
      // Flow control is between NICs and switches.
      for (const NetdevFacts* netdev : NetdevsOf(device, port, facts)) {
        if (device.software) continue;
        AdviseOnFlowControl(device, port, *netdev, advice);
        AdviseOnCongestion(device, port, *netdev, advice);
      }
      AdviseOnMtu(device, port, facts, advice);
      AdviseOnGids(device, port, facts, advice);
    }
  }
}

}  // namespace verbena::doctor
