// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/advice.h"

namespace verbena::doctor {
namespace {

// "16.0 GT/s PCIe" -> 16.0; 0 when it does not begin with a number.
double LinkSpeed(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

void AdviseOnPci(const DeviceFacts& device, std::vector<Advice>* advice) {
  const PciFacts& pci = *device.pci;
  const bool narrow = pci.link_width != 0 && pci.link_width < pci.link_width_max;
  const bool slow = LinkSpeed(pci.link_speed) < LinkSpeed(pci.link_speed_max);
  if (narrow || slow) {
    advice->push_back(
        {Severity::kSlow,
         "pci_link",
         device.name,
         absl::StrCat("Its PCI Express link runs at ", pci.link_speed, " x", pci.link_width,
                      " and could run at ", pci.link_speed_max, " x", pci.link_width_max),
         "The slot bounds what the NIC can move. A slot with fewer lanes, a riser or a bad contact "
         "is "
         "the usual cause.",
         {absl::StrCat("lspci -vv -s ", pci.address, " | grep -e LnkCap: -e LnkSta:")}});
  }
  if (!pci.relaxed_ordering.value_or(true)) {
    advice->push_back(
        {Severity::kSlow,
         "relaxed_ordering",
         device.name,
         "PCI Express relaxed ordering is off for this device",
         "With it the machine may take the NIC's writes out of order, which some (AMD's, and most "
         "with two sockets) need for full bandwidth.",
         {absl::StrCat("setpci -s ", pci.address, " CAP_EXP+8.w=0010:0010"),
          "Look for \"relaxed ordering\" in the firmware's setup, and with mlxconfig for "
          "PCI_WR_ORDERING"}});
  }
}

void AdviseOnAbilities(const DeviceFacts& device, std::vector<Advice>* advice) {
  const VerbsCapabilities& can = device.verbs.capabilities;
  if (can.reliable_connection.support == Support::kYes &&
      can.write_with_imm.support == Support::kNo) {
    advice->push_back(
        {Severity::kNote,
         "no_write_with_imm",
         device.name,
         "The device has no write with immediate data",
         absl::StrCat("Verbena says the end of a large payload with it; here it has to send a "
                      "message of its own. ",
                      device.transport == Transport::kIwarp
                          ? "iWARP is so; also, a SEND without a receive ends the connection."
                          : ""),
         {absl::StrCat("ibv_devinfo -v -d ", device.name)}});
  }
  if (device.software && can.reliable_connection.support == Support::kYes) {
    advice->push_back({Severity::kNote,
                       "software_device",
                       device.name,
                       "The kernel plays this NIC in software",
                       "It is good for trying and testing; its figures say nothing of a NIC's.",
                       {"rdma link show"}});
  }
}

}  // namespace

void AdviseOnDevice(const Facts& facts, std::vector<Advice>* advice) {
  for (const DeviceFacts& device : facts.devices) {
    if (device.pci.has_value() && !device.software) AdviseOnPci(device, advice);
    AdviseOnAbilities(device, advice);
  }
}

}  // namespace verbena::doctor
