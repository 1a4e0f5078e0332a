// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/report.h"

#include <utility>

namespace verbena::doctor {

Diagnosis Diagnose(Facts facts, Family family) {
  Diagnosis diagnosis;
  diagnosis.family = family;
  diagnosis.verdict = Judge(facts, family);
  diagnosis.advice = Advise(facts, diagnosis.verdict);
  diagnosis.facts = std::move(facts);
  return diagnosis;
}

std::vector<NamedCapability> NamedCapabilities(const VerbsCapabilities& capabilities) {
  return {
      {"reliable_connection", "reliable connection", &capabilities.reliable_connection},
      {"write_with_imm", "write with immediate", &capabilities.write_with_imm},
      {"send_with_invalidate", "send with invalidate", &capabilities.send_with_invalidate},
      {"atomics", "atomics", &capabilities.atomics},
      {"memory_windows", "memory windows type 2", &capabilities.memory_windows},
      {"shared_receive_queue", "shared receive queue", &capabilities.shared_receive_queue},
      {"on_demand_paging", "on-demand paging", &capabilities.on_demand_paging},
      {"relaxed_ordering", "relaxed ordering", &capabilities.relaxed_ordering},
  };
}

const char* Name(GidType type) {
  switch (type) {
    case GidType::kUnknown:
      return "unknown";
    case GidType::kInfiniBand:
      return "InfiniBand";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
  }
  return "unknown";
}

const char* Name(LinkLayer layer) {
  switch (layer) {
    case LinkLayer::kUnknown:
      return "unknown";
    case LinkLayer::kInfiniBand:
      return "InfiniBand";
    case LinkLayer::kEthernet:
      return "Ethernet";
  }
  return "unknown";
}

const char* Name(ForkState state) {
  switch (state) {
    case ForkState::kUnknown:
      return "unknown";
    case ForkState::kUnsafe:
      return "unsafe";
    case ForkState::kEnabled:
      return "enabled";
    case ForkState::kUnneeded:
      return "unneeded";
  }
  return "unknown";
}

const char* TransportName(const DeviceFacts& device, const PortFacts& port) {
  switch (device.transport) {
    case Transport::kUnknown:
      return "unknown transport";
    case Transport::kInfiniBand:
      return port.link_layer == LinkLayer::kEthernet ? "RoCE" : "InfiniBand";
    case Transport::kIwarp:
      return "iWARP";
  }
  return "unknown transport";
}

}  // namespace verbena::doctor
