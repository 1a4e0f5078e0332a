// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "verbena/tools/doctor/address.h"
#include "verbena/tools/doctor/bytes.h"
#include "verbena/tools/doctor/counter_meaning.h"
#include "verbena/tools/doctor/report.h"

namespace verbena::doctor {
namespace {

constexpr size_t kColumns = 100;
// Where the text of a line begins, after its label.
constexpr size_t kTextColumn = 19;

// Appends `text` in lines of kColumns, the first after `head`, the others after as much space.
void Wrap(const std::string& head, absl::string_view text, std::string* out) {
  std::string line = head;
  bool empty = true;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(out, line, "\n");
      line.assign(head.size(), ' ');
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  if (!empty) absl::StrAppend(out, line, "\n");
}

void Line(const char* label, absl::string_view text, std::string* out) {
  Wrap(absl::StrFormat("  %-*s", static_cast<int>(kTextColumn) - 2, label), text, out);
}

std::string PortLine(const DeviceFacts& device, const PortFacts& port, const Facts& facts) {
  std::string line = absl::StrCat(TransportName(device, port), ", ", Name(port.link_layer), ", ",
                                  port.state.empty() ? "no state" : port.state);
  if (!port.physical_state.empty()) absl::StrAppend(&line, " (", port.physical_state, ")");
  if (!port.rate.empty()) absl::StrAppend(&line, ", ", port.rate);
  if (port.mtu_active_bytes != 0) {
    absl::StrAppend(&line, ", MTU ", port.mtu_active_bytes, " of ", port.mtu_max_bytes);
  }
  for (const NetdevFacts* netdev : NetdevsOf(device, port, facts)) {
    absl::StrAppend(&line, ", on ", netdev->name, " (MTU ", netdev->mtu_bytes, ")");
  }
  return line;
}

void AddGids(const DeviceFacts& device, const PortFacts& port, const Diagnosis& diagnosis,
             std::string* out) {
  const GidChoice choice = ChooseGid(device, port, diagnosis.facts, diagnosis.family);
  for (size_t i = 0; i < port.gids.size(); ++i) {
    const GidOpinion& opinion = choice.opinions[i];
    std::string line =
        absl::StrCat(port.gids[i].index, ": ", GidText(port.gids[i].bytes), ", ", opinion.note);
    if (choice.chosen == i) absl::StrAppend(&line, ". Used: ", choice.why);
    if (!opinion.usable) absl::StrAppend(&line, ". Not usable");
    Line(i == 0 ? "GIDs" : "", line, out);
  }
  if (!choice.chosen.has_value()) Line(port.gids.empty() ? "GIDs" : "", choice.why, out);
}

void AddCounters(const DeviceFacts& device, const PortFacts& port, const Facts& facts,
                 std::string* out) {
  const std::vector<Counter> all = AllCounters(device, port, facts);
  bool any = false;
  for (Trouble trouble :
       {Trouble::kBroken, Trouble::kDiscard, Trouble::kRetransmission, Trouble::kOutOfSequence,
        Trouble::kReceiverNotReady, Trouble::kCongestion, Trouble::kPause}) {
    std::vector<std::string> named;
    for (const Counter& counter : NonZero(all, trouble)) {
      named.push_back(absl::StrCat(counter.name, " ", counter.value));
    }
    if (named.empty()) continue;
    std::vector<std::string> words = absl::StrSplit(Name(trouble), '_');
    Line(any ? "" : "counters",
         absl::StrCat(absl::StrJoin(words, " "), ": ", absl::StrJoin(named, ", ")), out);
    any = true;
  }
  if (!any) {
    Line("counters",
         all.empty() ? "none can be read here"
                     : absl::StrCat("none of ", all.size(), " says trouble"),
         out);
  }
}

void AddPort(const DeviceFacts& device, const PortFacts& port, const Diagnosis& diagnosis,
             std::string* out) {
  Line(absl::StrCat("port ", port.number).c_str(), PortLine(device, port, diagnosis.facts), out);
  AddGids(device, port, diagnosis, out);
  AddCounters(device, port, diagnosis.facts, out);
}

void AddLimits(const DeviceFacts& device, std::string* out) {
  const VerbsLimits& limits = device.verbs.limits;
  uint64_t message_bytes = 0;
  for (const PortFacts& port : device.ports) {
    message_bytes = std::max(message_bytes, port.message_bytes_max);
  }
  Line("limits",
       absl::StrCat(limits.queue_pairs_max, " queue pairs (", limits.queue_depth_max, " deep), ",
                    limits.completion_queues_max, " completion queues (",
                    limits.completion_queue_depth_max, " deep), ", limits.memory_regions_max,
                    " memory regions, messages of ", FormatBytes(message_bytes)),
       out);
  if (device.verbs.capabilities.reliable_connection.support != Support::kYes) return;
  Line("",
       absl::StrCat("by trying: ", limits.send_sge_max, " pieces per send, ", limits.recv_sge_max,
                    " per receive, ", limits.inline_bytes_max, " bytes inline"),
       out);
}

void AddCapabilities(const DeviceFacts& device, std::string* out) {
  std::vector<std::string> can, cannot;
  for (const NamedCapability& named : NamedCapabilities(device.verbs.capabilities)) {
    if (named.capability->support == Support::kYes) can.push_back(named.title);
    if (named.capability->support == Support::kNo) {
      cannot.push_back(absl::StrCat(named.title, " (", named.capability->how, ")"));
    }
  }
  if (!can.empty()) Line("can", absl::StrJoin(can, ", "), out);
  if (!cannot.empty()) Line("cannot", absl::StrJoin(cannot, ", "), out);
}

std::string PciLine(const PciFacts& pci) {
  std::string line = pci.address;
  if (!pci.link_speed.empty()) {
    absl::StrAppend(&line, ", ", pci.link_speed, " x", pci.link_width, " of ", pci.link_speed_max,
                    " x", pci.link_width_max);
  }
  if (pci.numa_node >= 0) absl::StrAppend(&line, ", NUMA node ", pci.numa_node);
  absl::StrAppend(&line, ", relaxed ordering ",
                  !pci.relaxed_ordering.has_value() ? "unknown (reading it needs root)"
                  : *pci.relaxed_ordering           ? "on"
                                                    : "off");
  return line;
}

void AddDevice(const DeviceFacts& device, const DeviceVerdict& verdict, const Diagnosis& diagnosis,
               std::string* out) {
  const bool usable = verdict.reason == Reason::kUsable;
  absl::StrAppend(out, "\n");
  Wrap(absl::StrCat(device.name, "  "),
       absl::StrCat(usable ? "usable " : "NOT usable: ", verdict.detail), out);
  if (device.pci.has_value() && !device.software) Line("PCI", PciLine(*device.pci), out);
  if (device.software) Line("hardware", "none: the kernel plays this device", out);
  if (!device.firmware.empty()) Line("firmware", device.firmware, out);
  for (const PortFacts& port : device.ports) AddPort(device, port, diagnosis, out);
  if (device.verbs.opened) AddLimits(device, out);
  AddCapabilities(device, out);
}

std::string MemlockLine(const HostFacts& host) {
  std::string line = FormatBytes(host.memlock_bytes);
  if (host.memlock_exempt && host.memlock_bytes != kUnlimited)
    absl::StrAppend(&line, ", not in force (CAP_IPC_LOCK)");
  const uint64_t connections = ConnectionsByMemlock(host);
  absl::StrAppend(&line, ": ",
                  connections == kUnlimited ? "any number of" : absl::StrCat(connections),
                  " connections of ", FormatBytes(ConnectionBytes()));
  return line;
}

std::string CgroupLine(const HostFacts& host) {
  std::string line = absl::StrCat("memory ", FormatBytes(host.cgroup_memory_bytes_max), ", ",
                                  host.cgroup_rdma.empty() ? "RDMA objects unlimited" : "");
  std::vector<std::string> limits;
  for (const CgroupRdmaLimit& limit : host.cgroup_rdma) {
    limits.push_back(absl::StrCat(limit.device, " ", FormatCount(limit.handles_max),
                                  " handles and ", FormatCount(limit.objects_max), " objects"));
  }
  return absl::StrCat(line, absl::StrJoin(limits, ", "));
}

std::string NodeText(const DeviceNode& node) {
  const std::string name = node.path.substr(node.path.rfind('/') + 1);
  if (!node.exists) return absl::StrCat(name.empty() ? "a device's file" : name, " missing");
  return absl::StrCat(name, " ", node.open_errno == 0 ? "ok" : strerror(node.open_errno));
}

void AddHost(const Facts& facts, std::string* out) {
  const HostFacts& host = facts.host;
  absl::StrAppend(out, "\nHost\n");
  auto word = [](bool loaded) { return loaded ? "" : " (not loaded)"; };
  Line("modules",
       absl::StrCat("ib_core", word(host.core_module), ", ib_uverbs", word(host.uverbs_module),
                    ", rdma_ucm", word(host.ucm_module)),
       out);
  std::vector<std::string> nodes = {NodeText(host.connection_manager)};
  for (const DeviceFacts& device : facts.devices) nodes.push_back(NodeText(device.node));
  Line("/dev/infiniband", host.device_folder ? absl::StrJoin(nodes, ", ") : "missing", out);
  Line("locked memory", MemlockLine(host), out);
  Line("control group", CgroupLine(host), out);
  if (host.devices_shared.has_value()) {
    Line("namespaces",
         *host.devices_shared ? "RDMA devices are shared between network namespaces"
                              : "each RDMA device belongs to one network namespace",
         out);
  }
  if (host.fork != ForkState::kUnknown) {
    Line("fork", host.fork == ForkState::kUnsafe ? "unsafe after a device was opened" : "safe",
         out);
  }
  std::vector<std::string> routes;
  for (const AddressRoute& route : host.routes) {
    routes.push_back(absl::StrCat(ToText(route.address), " (", route.netdev, ") -> ",
                                  route.device.empty() ? "no device" : route.device));
  }
  if (!routes.empty()) Line("addresses", absl::StrJoin(routes, ", "), out);
}

void AddAdvice(const std::vector<Advice>& advice, std::string* out) {
  if (advice.empty()) {
    absl::StrAppend(out, "\nNo advice: nothing looks wrong.\n");
    return;
  }
  absl::StrAppend(out, "\nAdvice, the most important first\n");
  for (size_t i = 0; i < advice.size(); ++i) {
    const Advice& one = advice[i];
    Wrap(absl::StrFormat("%3d. ", i + 1),
         absl::StrCat("[", Name(one.severity), "] ", one.subject, ": ", one.what), out);
    Wrap("     why: ", one.why, out);
    // Commands are to be copied, so they are not broken.
    for (const std::string& command : one.commands) {
      absl::StrAppend(out, &command == &one.commands[0] ? "     do:  " : "          ", command,
                      "\n");
    }
  }
}

std::string Headline(const Diagnosis& diagnosis) {
  if (diagnosis.verdict.reason != Reason::kUsable) {
    return absl::StrCat("RDMA is not usable: ", diagnosis.verdict.detail, ".");
  }
  std::vector<std::string> usable;
  for (size_t i = 0; i < diagnosis.facts.devices.size(); ++i) {
    if (diagnosis.verdict.devices[i].reason == Reason::kUsable) {
      usable.push_back(diagnosis.facts.devices[i].name);
    }
  }
  return absl::StrCat("RDMA is usable: ", absl::StrJoin(usable, ", "), " (", usable.size(), " of ",
                      diagnosis.facts.devices.size(),
                      diagnosis.facts.devices.size() == 1 ? " device)." : " devices).");
}

}  // namespace

std::string ReportText(const Diagnosis& diagnosis) {
  std::string out;
  Wrap("", Headline(diagnosis), &out);
  for (size_t i = 0; i < diagnosis.facts.devices.size(); ++i) {
    AddDevice(diagnosis.facts.devices[i], diagnosis.verdict.devices[i], diagnosis, &out);
  }
  AddHost(diagnosis.facts, &out);
  AddAdvice(diagnosis.advice, &out);
  return out;
}

}  // namespace verbena::doctor
