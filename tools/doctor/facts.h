// SPDX-License-Identifier: Apache-2.0
//
// What doctor has found out, before anybody judges it. Plain values: the gathering (gather.h) fills
// them in, the judgement (verdict.h, advice.h) reads them, and a test writes them by hand. Whatever
// could not be found out keeps its default or is absent; nothing here is a guess.

#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace verbena::doctor {

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// 16 bytes in network order; IPv4 as ::ffff:a.b.c.d. The form that RoCE gives a GID.
using IpAddress = std::array<uint8_t, 16>;

// One number that the kernel counts since the device or the net device came up.
struct Counter {
  std::string source;  // "counters", "hw_counters", "statistics", "ethtool" or "dcb".
  std::string name;
  uint64_t value = 0;
};

enum class GidType { kUnknown, kInfiniBand, kRoceV1, kRoceV2 };
enum class LinkLayer { kUnknown, kInfiniBand, kEthernet };
enum class Transport { kUnknown, kInfiniBand, kIwarp };  // kInfiniBand: RoCE too.

struct GidFacts {
  uint32_t index = 0;
  IpAddress bytes{};
  GidType type = GidType::kUnknown;
  std::string netdev;  // Empty: InfiniBand and iWARP.
};

struct PortFacts {
  uint32_t number = 1;
  LinkLayer link_layer = LinkLayer::kUnknown;
  std::string state;              // "ACTIVE", "DOWN", ...
  std::string physical_state;     // "LinkUp", "Disabled", ...
  std::string rate;               // "100 Gb/sec (4X EDR)"
  uint32_t mtu_active_bytes = 0;  // 0: the device could not be opened.
  uint32_t mtu_max_bytes = 0;
  uint64_t message_bytes_max = 0;
  std::vector<GidFacts> gids;  // Those that are set.
  std::vector<Counter> counters;
};

// The PCI device below an RDMA device.
struct PciFacts {
  std::string address;                     // "0000:3b:00.0"
  int numa_node = -1;                      // -1: the machine has no nodes, or does not say.
  std::string link_speed, link_speed_max;  // "16.0 GT/s PCIe"
  uint32_t link_width = 0, link_width_max = 0;
  std::optional<bool> relaxed_ordering;  // Absent: reading it needs root.
};

enum class Support { kUnknown, kNo, kYes };

struct Capability {
  Support support = Support::kUnknown;
  std::string how;  // How we know: "created one", "refused: Operation not supported".
};

struct VerbsCapabilities {
  Capability reliable_connection;
  Capability write_with_imm;
  Capability send_with_invalidate;
  Capability atomics;
  Capability memory_windows;  // Type 2.
  Capability shared_receive_queue;
  Capability on_demand_paging;
  Capability relaxed_ordering;
};

struct VerbsLimits {
  uint64_t queue_pairs_max = 0;
  uint64_t queue_depth_max = 0;  // As reported; real limits depend on the shape of an entry.
  uint64_t completion_queues_max = 0;
  uint64_t completion_queue_depth_max = 0;
  uint64_t memory_regions_max = 0;
  uint64_t memory_region_bytes_max = 0;
  // Found by creating queue pairs.
  uint32_t send_sge_max = 0;
  uint32_t recv_sge_max = 0;
  uint32_t inline_bytes_max = 0;
};

struct PortAttributes {
  uint32_t number = 1;
  uint32_t mtu_active_bytes = 0;
  uint32_t mtu_max_bytes = 0;
  uint64_t message_bytes_max = 0;
};

// What libibverbs says of one device.
struct VerbsFacts {
  bool listed = false;  // False: no provider library for this device, or no ib_uverbs.
  bool opened = false;
  int open_errno = 0;                 // Why not opened.
  int reliable_connection_errno = 0;  // Why no queue pair of a reliable connection.
  uint32_t vendor_id = 0;
  VerbsLimits limits;
  VerbsCapabilities capabilities;
  std::vector<PortAttributes> ports;
};

struct DeviceNode {
  std::string path;
  bool exists = false;
  int open_errno = 0;  // 0: it can be opened for reading and writing.
};

struct DeviceFacts {
  std::string name;
  Transport transport = Transport::kUnknown;
  std::string firmware;
  bool software = false;  // rxe, siw: the kernel plays the NIC.
  std::optional<PciFacts> pci;
  DeviceNode node;  // /dev/infiniband/uverbsN
  VerbsFacts verbs;
  std::vector<PortFacts> ports;
};

// A net device of this network namespace.
struct NetdevFacts {
  std::string name;
  std::string driver;  // Empty: virtual.
  uint32_t mtu_bytes = 0;
  bool up = false;
  std::optional<uint8_t> pfc_priorities;  // Bit p: priority p is paused and not dropped.
  std::optional<bool> global_pause;       // 802.3x, all priorities alike.
  // Bit p: ECN for RoCE is on for priority p, as notification and as reaction point. Only some
  // drivers tell.
  std::optional<uint8_t> ecn_priorities;
  std::vector<Counter> counters;
};

struct LocalAddress {
  std::string netdev;
  IpAddress address{};
};

// What the connection manager answers when asked which device an address leads to.
struct AddressRoute {
  std::string netdev;
  IpAddress address{};
  std::string device;  // Empty: to none.
};

struct CgroupRdmaLimit {
  std::string device;
  uint64_t handles_max = kUnlimited;
  uint64_t objects_max = kUnlimited;  // Queue pairs, completion queues, memory regions, ...
};

enum class ForkState { kUnknown, kUnsafe, kEnabled, kUnneeded };

struct HostFacts {
  bool core_module = false;    // ib_core
  bool uverbs_module = false;  // ib_uverbs
  bool ucm_module = false;     // rdma_ucm
  bool device_folder = false;  // /dev/infiniband
  DeviceNode connection_manager;
  uint64_t memlock_bytes = 0, memlock_hard_bytes = 0;
  bool memlock_exempt = false;  // CAP_IPC_LOCK: the limit does not hold.
  uint64_t cgroup_memory_bytes_max = kUnlimited;
  std::vector<CgroupRdmaLimit> cgroup_rdma;
  std::optional<bool> devices_shared;  // Between network namespaces. Absent: no ib_core.
  ForkState fork = ForkState::kUnknown;
  std::vector<LocalAddress> addresses;
  std::vector<AddressRoute> routes;
};

struct Facts {
  HostFacts host;
  std::vector<DeviceFacts> devices;
  std::vector<NetdevFacts> netdevs;
};

}  // namespace verbena::doctor
