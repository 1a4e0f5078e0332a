// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include <string>

#include "nlohmann/json.hpp"
#include "verbena/tools/doctor/address.h"
#include "verbena/tools/doctor/counter_meaning.h"
#include "verbena/tools/doctor/report.h"

namespace verbena::doctor {
namespace {

// Keeps the order of keys, for people who read it after all.
using Json = nlohmann::ordered_json;

// Grows with a change that a reader has to know of; a new key is none.
constexpr int kFormat = 1;

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json();
}

// Null for "unlimited".
Json Limit(uint64_t limit) { return limit == kUnlimited ? Json() : Json(limit); }

Json ToJson(const DeviceNode& node) {
  Json json = {{"path", node.path}, {"exists", node.exists}, {"usable", node.open_errno == 0}};
  json["error"] = node.open_errno == 0 ? Json() : Json(strerror(node.open_errno));
  return json;
}

Json ToJson(const Capability& capability) {
  Json supported;
  if (capability.support != Support::kUnknown) supported = capability.support == Support::kYes;
  return {{"supported", supported}, {"how", capability.how}};
}

Json CapabilitiesJson(const VerbsCapabilities& capabilities) {
  Json json = Json::object();
  for (const NamedCapability& named : NamedCapabilities(capabilities)) {
    json[named.name] = ToJson(*named.capability);
  }
  return json;
}

Json LimitsJson(const VerbsLimits& limits) {
  return {{"queue_pairs", limits.queue_pairs_max},
          {"queue_depth", limits.queue_depth_max},
          {"completion_queues", limits.completion_queues_max},
          {"completion_queue_depth", limits.completion_queue_depth_max},
          {"memory_regions", limits.memory_regions_max},
          {"memory_region_bytes", limits.memory_region_bytes_max},
          {"send_sge", limits.send_sge_max},
          {"recv_sge", limits.recv_sge_max},
          {"inline_bytes", limits.inline_bytes_max}};
}

Json PciJson(const PciFacts& pci) {
  return {{"address", pci.address},
          {"numa_node", pci.numa_node},
          {"link_speed", pci.link_speed},
          {"link_speed_max", pci.link_speed_max},
          {"link_width", pci.link_width},
          {"link_width_max", pci.link_width_max},
          {"relaxed_ordering", OrNull(pci.relaxed_ordering)}};
}

Json GidsJson(const DeviceFacts& device, const PortFacts& port, const Diagnosis& diagnosis) {
  const GidChoice choice = ChooseGid(device, port, diagnosis.facts, diagnosis.family);
  Json gids = Json::array();
  for (size_t i = 0; i < port.gids.size(); ++i) {
    const GidFacts& gid = port.gids[i];
    gids.push_back({{"index", gid.index},
                    {"gid", GidText(gid.bytes)},
                    {"type", Name(gid.type)},
                    {"netdev", gid.netdev},
                    {"usable", choice.opinions[i].usable},
                    {"note", choice.opinions[i].note},
                    {"used", choice.chosen == i}});
  }
  return {{"gids", gids}, {"gid_why", choice.why}};
}

Json TroublesJson(const DeviceFacts& device, const PortFacts& port, const Facts& facts) {
  Json troubles = Json::array();
  for (const Counter& counter : AllCounters(device, port, facts)) {
    const Trouble trouble = MeaningOf(counter);
    if (counter.value == 0 || trouble == Trouble::kNone) continue;
    troubles.push_back({{"source", counter.source},
                        {"name", counter.name},
                        {"value", counter.value},
                        {"means", Name(trouble)}});
  }
  return troubles;
}

Json PortJson(const DeviceFacts& device, const PortFacts& port, const Diagnosis& diagnosis) {
  Json json = {{"number", port.number},
               {"transport", TransportName(device, port)},
               {"link_layer", Name(port.link_layer)},
               {"state", port.state},
               {"physical_state", port.physical_state},
               {"rate", port.rate},
               {"mtu_active_bytes", port.mtu_active_bytes},
               {"mtu_max_bytes", port.mtu_max_bytes},
               {"message_bytes_max", port.message_bytes_max}};
  json["netdevs"] = Json::array();
  for (const NetdevFacts* netdev : NetdevsOf(device, port, diagnosis.facts)) {
    json["netdevs"].push_back({{"name", netdev->name},
                               {"driver", netdev->driver},
                               {"mtu_bytes", netdev->mtu_bytes},
                               {"up", netdev->up},
                               {"pfc_priorities", OrNull(netdev->pfc_priorities)},
                               {"global_pause", OrNull(netdev->global_pause)},
                               {"ecn_priorities", OrNull(netdev->ecn_priorities)}});
  }
  json.update(GidsJson(device, port, diagnosis));
  json["counters"] = Json::object();
  for (const Counter& counter : port.counters) json["counters"][counter.name] = counter.value;
  json["trouble"] = TroublesJson(device, port, diagnosis.facts);
  return json;
}

Json DeviceJson(const DeviceFacts& device, const DeviceVerdict& verdict,
                const Diagnosis& diagnosis) {
  Json json = {{"name", device.name},
               {"usable", verdict.reason == Reason::kUsable},
               {"reason", Name(verdict.reason)},
               {"detail", verdict.detail},
               {"software", device.software},
               {"firmware", device.firmware},
               {"pci", device.pci.has_value() ? PciJson(*device.pci) : Json()},
               {"node", ToJson(device.node)},
               {"limits", device.verbs.opened ? LimitsJson(device.verbs.limits) : Json()},
               {"capabilities", CapabilitiesJson(device.verbs.capabilities)}};
  json["ports"] = Json::array();
  for (const PortFacts& port : device.ports) {
    json["ports"].push_back(PortJson(device, port, diagnosis));
  }
  return json;
}

Json HostJson(const HostFacts& host) {
  Json json = {{"modules",
                {{"ib_core", host.core_module},
                 {"ib_uverbs", host.uverbs_module},
                 {"rdma_ucm", host.ucm_module}}},
               {"device_folder", host.device_folder},
               {"connection_manager", ToJson(host.connection_manager)},
               {"memlock_bytes", Limit(host.memlock_bytes)},
               {"memlock_hard_bytes", Limit(host.memlock_hard_bytes)},
               {"memlock_exempt", host.memlock_exempt},
               {"connection_bytes", ConnectionBytes()},
               {"connections_by_memlock", Limit(ConnectionsByMemlock(host))},
               {"cgroup_memory_bytes", Limit(host.cgroup_memory_bytes_max)},
               {"devices_shared_between_namespaces", OrNull(host.devices_shared)},
               {"fork", Name(host.fork)}};
  json["cgroup_rdma"] = Json::array();
  for (const CgroupRdmaLimit& limit : host.cgroup_rdma) {
    json["cgroup_rdma"].push_back({{"device", limit.device},
                                   {"handles", Limit(limit.handles_max)},
                                   {"objects", Limit(limit.objects_max)}});
  }
  json["addresses"] = Json::array();
  for (const AddressRoute& route : host.routes) {
    json["addresses"].push_back({{"address", ToText(route.address)},
                                 {"netdev", route.netdev},
                                 {"device", route.device.empty() ? Json() : Json(route.device)}});
  }
  return json;
}

}  // namespace

std::string ReportJson(const Diagnosis& diagnosis) {
  Json json = {{"format", kFormat},
               {"usable", diagnosis.verdict.reason == Reason::kUsable},
               {"reason", Name(diagnosis.verdict.reason)},
               {"detail", diagnosis.verdict.detail}};
  json["devices"] = Json::array();
  for (size_t i = 0; i < diagnosis.facts.devices.size(); ++i) {
    json["devices"].push_back(
        DeviceJson(diagnosis.facts.devices[i], diagnosis.verdict.devices[i], diagnosis));
  }
  json["host"] = HostJson(diagnosis.facts.host);
  json["advice"] = Json::array();
  for (const Advice& advice : diagnosis.advice) {
    json["advice"].push_back({{"severity", Name(advice.severity)},
                              {"id", advice.id},
                              {"subject", advice.subject},
                              {"what", advice.what},
                              {"why", advice.why},
                              {"commands", advice.commands}});
  }
  // Text of a driver need not be UTF-8; it must not end the program.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace verbena::doctor
