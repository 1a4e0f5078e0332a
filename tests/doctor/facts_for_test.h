// SPDX-License-Identifier: Apache-2.0
//
// Facts of made-up machines, to be changed by a test in the one thing that it is about.

#pragma once

#include <string>

#include "verbena/tools/doctor/address.h"
#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

inline GidFacts Gid(uint32_t index, const std::string& address, GidType type,
                    const std::string& netdev) {
  return {index, ParseAddress(address), type, netdev};
}

// A RoCE NIC on eth0 with 10.0.0.7 on which all is well: no advice.
inline Facts HealthyRoce() {
  Facts facts;
  HostFacts& host = facts.host;
  host.core_module = host.uverbs_module = host.ucm_module = true;
  host.device_folder = true;
  host.connection_manager = {"/dev/infiniband/rdma_cm", true, 0};
  host.memlock_bytes = host.memlock_hard_bytes = kUnlimited;
  host.devices_shared = true;
  host.fork = ForkState::kUnneeded;
  host.addresses = {{"lo", ParseAddress("127.0.0.1")},
                    {"eth0", ParseAddress("10.0.0.7")},
                    {"eth0", ParseAddress("fe80::1")}};
  host.routes = {{"eth0", ParseAddress("10.0.0.7"), "mlx5_0"}};

  NetdevFacts netdev;
  netdev.name = "eth0";
  netdev.driver = "mlx5_core";
  netdev.mtu_bytes = 9000;
  netdev.up = true;
  netdev.pfc_priorities = 1 << 3;
  netdev.global_pause = false;
  netdev.ecn_priorities = 1 << 3;
  facts.netdevs = {netdev};

  DeviceFacts device;
  device.name = "mlx5_0";
  device.transport = Transport::kInfiniBand;
  device.firmware = "16.35.2000";
  device.pci = PciFacts{"0000:3b:00.0", 0, "16.0 GT/s PCIe", "16.0 GT/s PCIe", 16, 16, true};
  device.node = {"/dev/infiniband/uverbs0", true, 0};
  device.verbs.listed = device.verbs.opened = true;
  device.verbs.limits.queue_pairs_max = 262144;
  VerbsCapabilities& can = device.verbs.capabilities;
  for (Capability* capability :
       {&can.reliable_connection, &can.write_with_imm, &can.send_with_invalidate, &can.atomics,
        &can.memory_windows, &can.shared_receive_queue, &can.on_demand_paging,
        &can.relaxed_ordering}) {
    *capability = {Support::kYes, "tried"};
  }

  PortFacts port;
  port.link_layer = LinkLayer::kEthernet;
  port.state = "ACTIVE";
  port.physical_state = "LinkUp";
  port.rate = "100 Gb/sec (4X EDR)";
  port.mtu_active_bytes = port.mtu_max_bytes = 4096;
  port.message_bytes_max = 1 << 30;
  port.gids = {
      Gid(0, "fe80::1", GidType::kRoceV1, "eth0"), Gid(1, "fe80::1", GidType::kRoceV2, "eth0"),
      Gid(2, "10.0.0.7", GidType::kRoceV1, "eth0"), Gid(3, "10.0.0.7", GidType::kRoceV2, "eth0")};
  port.counters = {{"hw_counters", "out_of_sequence", 0}, {"counters", "port_rcv_data", 123456}};
  device.ports = {port};
  facts.devices = {device};
  return facts;
}

// No RDMA: as a container on a machine without.
inline Facts Nothing() {
  Facts facts;
  facts.host.memlock_bytes = facts.host.memlock_hard_bytes = uint64_t{8} << 20;
  NetdevFacts netdev;
  netdev.name = "eth0";
  netdev.mtu_bytes = 1500;
  facts.netdevs = {netdev};
  return facts;
}

}  // namespace verbena::doctor
