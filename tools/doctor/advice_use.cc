// SPDX-License-Identifier: Apache-2.0
//
// Why RDMA cannot be used, and what to do about it.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/advice.h"

namespace verbena::doctor {
namespace {

// Net drivers whose NIC has an RDMA driver of its own that may not be loaded.
constexpr std::pair<const char*, const char*> kRdmaDrivers[] = {
    {"mlx5_core", "mlx5_ib"}, {"mlx4_en", "mlx4_ib"},  {"mlx4_core", "mlx4_ib"},
    {"bnxt_en", "bnxt_re"},   {"ice", "irdma"},        {"i40e", "irdma"},
    {"qede", "qedr"},         {"cxgb4", "iw_cxgb4"},   {"hns3", "hns_roce_hw_v2"},
    {"mana", "mana_ib"},      {"ionic", "ionic_rdma"},
};

// "modprobe mlx5_ib" for each NIC that is there.
std::vector<std::string> DriverCommands(const Facts& facts) {
  std::vector<std::string> commands;
  for (const NetdevFacts& netdev : facts.netdevs) {
    for (const auto& [net, rdma] : kRdmaDrivers) {
      std::string command = absl::StrCat("modprobe ", rdma);
      if (netdev.driver != net) continue;
      if (std::find(commands.begin(), commands.end(), command) == commands.end()) {
        commands.push_back(std::move(command));
      }
    }
  }
  return commands;
}

// The name of a net device to show a command with: one with hardware, if there is one.
std::string ExampleNetdev(const Facts& facts) {
  std::string name = "eth0";
  for (const NetdevFacts& netdev : facts.netdevs) {
    if (netdev.name == "lo") continue;
    name = netdev.name;
    if (!netdev.driver.empty()) break;
  }
  return name;
}

// Makes an RDMA device of a net device that is here.
std::vector<std::string> SoftRoceCommands(const Facts& facts) {
  return {"modprobe rdma_rxe",
          absl::StrCat("rdma link add rxe0 type rxe netdev ", ExampleNetdev(facts))};
}

void Append(std::vector<std::string> more, std::vector<std::string>* commands) {
  commands->insert(commands->end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

Advice AdviseOnMissingDevice(const Facts& facts) {
  Advice advice;
  advice.commands = DriverCommands(facts);
  const bool driver_known = !advice.commands.empty();
  advice.what =
      driver_known ? "A NIC is here whose RDMA driver is not loaded" : "There is no RDMA device";
  advice.why = driver_known
                   ? "The net driver alone does not make an RDMA device."
                   : "Without one only Verbena's software device (shm:NAME) works, between "
                     "processes of one host. Software RoCE makes an RDMA device of any net device.";
  if (!driver_known) {
    advice.commands = {"lspci | grep -i -e ethernet -e infiniband -e network"};
    Append(SoftRoceCommands(facts), &advice.commands);
  }
  return advice;
}

Advice AdviseOnMissingModule(const Facts& facts) {
  Advice advice;
  advice.what = "The kernel module ib_uverbs is not loaded";
  advice.why =
      "It is the way from programs to RDMA devices. It comes with the device's driver; in a "
      "container the host has to load it.";
  advice.commands = {"modprobe ib_uverbs"};
  Append(DriverCommands(facts), &advice.commands);
  if (facts.devices.empty() && advice.commands.size() == 1) {
    advice.why += " There is no RDMA device either; software RoCE makes one of any net device.";
    Append(SoftRoceCommands(facts), &advice.commands);
  }
  return advice;
}

Advice AdviseOnPort(const DeviceFacts& device) {
  Advice advice;
  advice.what = "No port is active";
  advice.why =
      "A port is active when its cable has a link and, on InfiniBand, a subnet manager "
      "has set it up.";
  const bool infiniband =
      !device.ports.empty() && device.ports[0].link_layer == LinkLayer::kInfiniBand;
  const std::string netdev = NetdevName(device);
  if (infiniband) {
    advice.commands = {absl::StrCat("ibstat ", device.name), "sminfo", "systemctl start opensm"};
  } else {
    advice.commands = {"rdma link show",
                       absl::StrCat("ip link set ", netdev.empty() ? "NETDEV" : netdev, " up")};
  }
  return advice;
}

Advice AdviseOnNamespace(const DeviceFacts& device) {
  Advice advice;
  advice.what = "Its net device is in another network namespace";
  advice.why =
      "RDMA devices are shared between network namespaces unless told otherwise, so the device is "
      "visible here, but connections are made by the addresses of its net device.";
  advice.commands = {absl::StrCat("ip link set ", NetdevName(device), " netns PID"),
                     "docker run --network=host --device=/dev/infiniband ...",
                     "rdma system set netns exclusive   # devices then move with rdma dev set"};
  return advice;
}

Advice AdviseOnAddress(const DeviceFacts& device) {
  const std::string netdev = NetdevName(device);
  const std::string shown = netdev.empty() ? "NETDEV" : netdev;
  Advice advice;
  advice.what = "No IP address leads to the device";
  advice.why =
      "Verbena connects by IP address, and the connection manager finds the device by the net "
      "device that has the address. The net device may have none, or share it with another "
      "RDMA device that is taken instead.";
  advice.commands = {"rdma link show", absl::StrCat("ip address show dev ", shown),
                     absl::StrCat("ip address add 10.0.0.1/24 dev ", shown)};
  return advice;
}

Advice AdviseOnReason(Reason reason, const DeviceFacts& device, const Facts& facts) {
  switch (reason) {
    case Reason::kNoVerbsModule:
      return AdviseOnMissingModule(facts);
    case Reason::kNoDevice:
      return AdviseOnMissingDevice(facts);
    case Reason::kNoDeviceNode:
      return {
          Severity::kNote,
          "",
          "",
          "The device's file in /dev/infiniband is missing",
          "The host has the device, but this container (or a system without udev) does not show "
          "its file.",
          {"docker run --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1 ...",
           "ls -l /dev/infiniband; cat /sys/class/infiniband_verbs/*/dev"}};
    case Reason::kNoPermission:
      return {Severity::kNote,
              "",
              "",
              "This process may not open the device",
              "Its files need read and write permission, and in a container the device control "
              "group has to allow them.",
              {"ls -l /dev/infiniband; id", "chmod 0666 /dev/infiniband/uverbs*",
               "docker run --device=/dev/infiniband ..."}};
    case Reason::kNoProvider:
      return {Severity::kNote,
              "",
              "",
              "libibverbs has no provider library for the device",
              "Each driver has a library of its own in rdma-core; in a small container image they "
              "are often left out.",
              {"apt-get install ibverbs-providers", "ibv_devices"}};
    case Reason::kOpenFailed:
      return {
          Severity::kNote,
          "",
          "",
          "The device cannot be opened",
          "The driver refuses: it may be resetting, or belong to another network namespace while "
          "RDMA devices are not shared between them.",
          {"dmesg | tail -50", "rdma system show", absl::StrCat("rdma dev show ", device.name)}};
    case Reason::kNoReliableConnection:
      return {Severity::kNote,
              "",
              "",
              "The device has no reliable connections",
              "Verbena needs queue pairs of type RC. Some devices list themselves as verbs without "
              "having them, such as AWS's EFA.",
              {absl::StrCat("ibv_rc_pingpong -d ", device.name),
               absl::StrCat("ibv_devinfo -v -d ", device.name)}};
    case Reason::kNoMemory:
      return {Severity::kNote,
              "",
              "",
              "There is not enough memory for one connection",
              "The NIC's queues and buffers are locked memory; the limit of the process or of the "
              "device's own resources does not allow them.",
              {"ulimit -l unlimited", "rdma resource show",
               "docker run --ulimit memlock=-1 --cap-add=IPC_LOCK ..."}};
    case Reason::kPortDown:
      return AdviseOnPort(device);
    case Reason::kNoConnectionManager:
      return {Severity::kNote,
              "",
              "",
              "The connection manager cannot be used",
              "Connections are made through /dev/infiniband/rdma_cm, which comes with the kernel "
              "module rdma_ucm and has to be shown to a container.",
              {"modprobe rdma_ucm", "ls -l /dev/infiniband/rdma_cm",
               "docker run --device=/dev/infiniband ..."}};
    case Reason::kOtherNamespace:
      return AdviseOnNamespace(device);
    case Reason::kNoAddress:
      return AdviseOnAddress(device);
    case Reason::kUsable:
      break;
  }
  return {};
}

}  // namespace

void AdviseOnUse(const Facts& facts, const Verdict& verdict, std::vector<Advice>* advice) {
  const bool usable = verdict.reason == Reason::kUsable;
  auto add = [&](Reason reason, const DeviceFacts& device, const std::string& subject,
                 const std::string& detail) {
    Advice added = AdviseOnReason(reason, device, facts);
    // Another device works: this one may be meant to be as it is.
    added.severity = usable ? Severity::kNote : Severity::kBlocks;
    added.id = Name(reason);
    added.subject = subject;
    if (!detail.empty()) absl::StrAppend(&added.what, " (", detail, ")");
    advice->push_back(std::move(added));
  };
  if (facts.devices.empty()) add(verdict.reason, DeviceFacts(), "host", "");
  for (size_t i = 0; i < facts.devices.size() && i < verdict.devices.size(); ++i) {
    const DeviceVerdict& judged = verdict.devices[i];
    if (judged.reason == Reason::kUsable) continue;
    add(judged.reason, facts.devices[i], facts.devices[i].name, judged.detail);
  }
}

}  // namespace verbena::doctor
