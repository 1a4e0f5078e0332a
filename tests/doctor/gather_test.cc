// SPDX-License-Identifier: Apache-2.0
//
// What is read from the kernel's files and messages, with made-up ones. No figure of this machine.

#include "verbena/tools/doctor/gather.h"

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "verbena/tests/doctor/fake_tree.h"
#include "verbena/tools/doctor/address.h"
#include "verbena/tools/doctor/bytes.h"
#include "verbena/tools/doctor/cgroup.h"
#include "verbena/tools/doctor/dcb.h"
#include "verbena/tools/doctor/netdevs.h"
#include "verbena/tools/doctor/pci.h"

namespace verbena::doctor {
namespace {

void AddNic(FakeTree* tree) {
  const std::string device = "sys/class/infiniband/mlx5_0";
  const std::string port = device + "/ports/1";
  tree->Write(device + "/node_type", "1: CA\n");
  tree->Write(device + "/fw_ver", "16.35.2000\n");
  tree->Write(port + "/state", "4: ACTIVE\n");
  tree->Write(port + "/phys_state", "5: LinkUp\n");
  tree->Write(port + "/link_layer", "Ethernet\n");
  tree->Write(port + "/rate", "100 Gb/sec (4X EDR)\n");
  tree->Write(port + "/gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0001\n");
  tree->Write(port + "/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  tree->Write(port + "/gids/10", "0000:0000:0000:0000:0000:ffff:0a00:0007\n");
  tree->Write(port + "/gids/2", "not an address\n");
  tree->Write(port + "/gid_attrs/types/0", "IB/RoCE v1\n");
  tree->Write(port + "/gid_attrs/types/10", "RoCE v2\n");
  tree->Write(port + "/gid_attrs/ndevs/0", "eth0\n");
  tree->Write(port + "/gid_attrs/ndevs/10", "eth0\n");
  tree->Write(port + "/counters/symbol_error", "2\n");
  tree->Write(port + "/counters/port_rcv_data", "N/A (no PMA)\n");
  tree->Write(port + "/hw_counters/out_of_sequence", "18446744073709551615\n");
  tree->Write(port + "/hw_counters/lifespan", "10\n");
  tree->Write("sys/devices/pci0000:00/0000:3b:00.0/numa_node", "1\n");
  tree->Write("sys/devices/pci0000:00/0000:3b:00.0/current_link_speed", "8.0 GT/s PCIe\n");
  tree->Write("sys/devices/pci0000:00/0000:3b:00.0/max_link_speed", "16.0 GT/s PCIe\n");
  tree->Write("sys/devices/pci0000:00/0000:3b:00.0/current_link_width", "8\n");
  tree->Write("sys/devices/pci0000:00/0000:3b:00.0/max_link_width", "16\n");
  tree->Link("sys/devices/pci0000:00/0000:3b:00.0/subsystem", "../../../bus/pci");
  tree->Link(device + "/device", "../../../devices/pci0000:00/0000:3b:00.0");
  tree->Write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
  tree->Write("sys/class/infiniband_verbs/abi_version", "6\n");
}

TEST(Gather, ReadsADevice) {
  FakeTree tree;
  AddNic(&tree);
  tree.Write("dev/infiniband/uverbs0", "");
  Facts facts = GatherFromFiles(tree.roots());
  ASSERT_EQ(facts.devices.size(), 1u);
  const DeviceFacts& device = facts.devices[0];
  EXPECT_EQ(device.name, "mlx5_0");
  EXPECT_EQ(device.transport, Transport::kInfiniBand);
  EXPECT_EQ(device.firmware, "16.35.2000");
  EXPECT_FALSE(device.software);
  EXPECT_EQ(device.node.path, tree.roots().dev + "/infiniband/uverbs0");
  EXPECT_TRUE(device.node.exists);
  EXPECT_EQ(device.node.open_errno, 0);
  ASSERT_TRUE(device.pci.has_value());
  EXPECT_EQ(device.pci->address, "0000:3b:00.0");
  EXPECT_EQ(device.pci->numa_node, 1);
  EXPECT_EQ(device.pci->link_width, 8u);
  EXPECT_EQ(device.pci->link_speed_max, "16.0 GT/s PCIe");
  EXPECT_FALSE(device.pci->relaxed_ordering.has_value());
}

TEST(Gather, ReadsAPort) {
  FakeTree tree;
  AddNic(&tree);
  Facts facts = GatherFromFiles(tree.roots());
  ASSERT_EQ(facts.devices[0].ports.size(), 1u);
  const PortFacts& port = facts.devices[0].ports[0];
  EXPECT_EQ(port.number, 1u);
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.physical_state, "LinkUp");
  EXPECT_EQ(port.link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(port.rate, "100 Gb/sec (4X EDR)");
  // Without empty ones and nonsense.
  ASSERT_EQ(port.gids.size(), 2u);
  EXPECT_EQ(port.gids[0].index, 0u);
  EXPECT_EQ(port.gids[0].type, GidType::kRoceV1);
  EXPECT_EQ(port.gids[1].index, 10u);
  EXPECT_EQ(port.gids[1].type, GidType::kRoceV2);
  EXPECT_EQ(GidText(port.gids[1].bytes), "::ffff:10.0.0.7");
  EXPECT_EQ(port.gids[1].netdev, "eth0");
  ASSERT_EQ(port.counters.size(), 2u);
  EXPECT_EQ(port.counters[0].name, "symbol_error");
  EXPECT_EQ(port.counters[1].value, 18446744073709551615u);
}

TEST(Gather, ReadsTheHost) {
  FakeTree tree;
  AddNic(&tree);
  tree.Write("sys/module/ib_core/parameters/netns_mode", "N\n");
  tree.Write("dev/infiniband/rdma_cm", "");
  tree.Write("proc/self/status", "Name:\tx\nCapInh:\t0\nCapEff:\t0000000000004000\n");
  HostFacts host = GatherFromFiles(tree.roots()).host;
  EXPECT_TRUE(host.core_module);
  EXPECT_TRUE(host.uverbs_module);
  EXPECT_FALSE(host.ucm_module);
  EXPECT_TRUE(host.device_folder);
  EXPECT_TRUE(host.connection_manager.exists);
  EXPECT_EQ(host.connection_manager.open_errno, 0);
  EXPECT_EQ(host.devices_shared, false);
  EXPECT_TRUE(host.memlock_exempt);
}

TEST(Gather, FindsNothingInAnEmptyTree) {
  FakeTree tree;
  Facts facts = GatherFromFiles(tree.roots());
  EXPECT_TRUE(facts.devices.empty());
  EXPECT_TRUE(facts.netdevs.empty());
  EXPECT_FALSE(facts.host.core_module);
  EXPECT_FALSE(facts.host.uverbs_module);
  EXPECT_FALSE(facts.host.device_folder);
  EXPECT_EQ(facts.host.connection_manager.open_errno, ENOENT);
  EXPECT_FALSE(facts.host.devices_shared.has_value());
  EXPECT_EQ(facts.host.cgroup_memory_bytes_max, kUnlimited);
}

TEST(Gather, SurvivesADeviceWithoutFiles) {
  FakeTree tree;
  tree.Write("sys/class/infiniband/odd0/ports/first/state", "4: ACTIVE");
  tree.Write("sys/class/infiniband/odd1/ports/1/gids/x", "");
  Facts facts = GatherFromFiles(tree.roots());
  ASSERT_EQ(facts.devices.size(), 2u);
  EXPECT_TRUE(facts.devices[0].ports.empty());
  EXPECT_EQ(facts.devices[1].ports[0].state, "");
  EXPECT_EQ(facts.devices[0].transport, Transport::kUnknown);
}

TEST(Gather, ASoftwareDeviceHasNoPciDevice) {
  FakeTree tree;
  tree.Write("sys/class/infiniband/rxe0/node_type", "1: CA");
  tree.Write("sys/class/infiniband/siw0/node_type", "4: RNIC");
  Facts facts = GatherFromFiles(tree.roots());
  EXPECT_TRUE(facts.devices[0].software);
  EXPECT_EQ(facts.devices[1].transport, Transport::kIwarp);
}

TEST(Gather, ReadsNetDevices) {
  FakeTree tree;
  tree.Write("sys/class/net/bonding_masters", "bond0\n");
  tree.Write("sys/class/net/eth0/mtu", "1500\n");
  tree.Write("sys/class/net/eth0/carrier", "1\n");
  tree.Write("sys/class/net/eth0/statistics/rx_dropped", "9\n");
  tree.Link("sys/class/net/eth0/device/driver", "../../../bus/pci/drivers/mlx5_core");
  for (const char* point : {"roce_np", "roce_rp"}) {
    const std::string folder = std::string("sys/class/net/eth0/ecn/") + point;
    tree.Write(folder + "/enable/3", "1\n");
    tree.Write(folder + "/enable/4", point == std::string("roce_np") ? "1\n" : "0\n");
  }
  tree.Write("sys/class/net/lo/mtu", "65536\n");
  std::vector<NetdevFacts> netdevs = GatherFromFiles(tree.roots()).netdevs;
  ASSERT_EQ(netdevs.size(), 2u);
  EXPECT_EQ(netdevs[0].name, "eth0");
  EXPECT_EQ(netdevs[0].driver, "mlx5_core");
  EXPECT_EQ(netdevs[0].mtu_bytes, 1500u);
  EXPECT_TRUE(netdevs[0].up);
  EXPECT_EQ(netdevs[0].counters[0].value, 9u);
  EXPECT_EQ(netdevs[0].ecn_priorities, 1 << 3);
  EXPECT_FALSE(netdevs[1].ecn_priorities.has_value());
}

TEST(Cgroup, TakesTheSmallestLimitOnTheWayToTheRoot) {
  FakeTree tree;
  tree.Write("proc/self/cgroup", "0::/a/b\n");
  tree.Write("sys/fs/cgroup/a/memory.max", "1048576\n");
  tree.Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  tree.Write("sys/fs/cgroup/a/rdma.max", "mlx5_0 hca_handle=3 hca_object=max\n");
  tree.Write("sys/fs/cgroup/a/b/rdma.max",
             "mlx5_0 hca_handle=max hca_object=70\nmlx5_1 hca_handle=max hca_object=max\n");
  EXPECT_EQ(ReadCgroupMemoryMax(tree.roots()), 1048576u);
  std::vector<CgroupRdmaLimit> limits = ReadCgroupRdma(tree.roots());
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].device, "mlx5_0");
  EXPECT_EQ(limits[0].handles_max, 3u);
  EXPECT_EQ(limits[0].objects_max, 70u);
}

TEST(Cgroup, KnowsVersion1) {
  FakeTree tree;
  tree.Write("proc/self/cgroup", "7:cpu,cpuacct:/x\n4:memory:/a\n3:rdma:/\n0::/\n");
  tree.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  tree.Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n");
  tree.Write("sys/fs/cgroup/rdma/rdma.max", "rxe0 hca_handle=1 hca_object=2\n");
  EXPECT_EQ(ReadCgroupMemoryMax(tree.roots()), 4096u);
  ASSERT_EQ(ReadCgroupRdma(tree.roots()).size(), 1u);
  EXPECT_EQ(ReadCgroupRdma(tree.roots())[0].objects_max, 2u);
}

TEST(Cgroup, SurvivesNonsense) {
  EXPECT_TRUE(ParseRdmaMax("").empty());
  EXPECT_TRUE(ParseRdmaMax("mlx5_0\n \nmlx5_1 hca_object= what=3").empty());
}

TEST(Pci, RelaxedOrderingIsABitOfTheExpressCapability) {
  std::string config(256, '\0');
  config[0x06] = 0x10;  // There are capabilities,
  config[0x34] = 0x50;  // the first here:
  config[0x50] = 0x01;  // power management,
  config[0x51] = 0x60;  // and the next
  config[0x60] = 0x10;  // is PCI Express.
  EXPECT_EQ(RelaxedOrdering(config), false);
  config[0x68] = 0x10;
  EXPECT_EQ(RelaxedOrdering(config), true);
  // What all but root get.
  EXPECT_FALSE(RelaxedOrdering(config.substr(0, 64)).has_value());
  EXPECT_FALSE(RelaxedOrdering("").has_value());
}

TEST(Pci, ARingOfCapabilitiesEnds) {
  std::string config(256, '\0');
  config[0x06] = 0x10;
  config[0x34] = 0x50;
  config[0x51] = 0x50;
  EXPECT_FALSE(RelaxedOrdering(config).has_value());
}

// The kernel's answer with one attribute in another, as dcbnl_ieee_fill() makes it.
std::vector<uint8_t> DcbAnswer() {
  std::vector<uint8_t> message(sizeof(nlmsghdr) + 4 + 4 + 4 + sizeof(ieee_pfc));
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(message.size());
  header.nlmsg_type = RTM_GETDCB;
  nlattr ieee{static_cast<uint16_t>(8 + sizeof(ieee_pfc)), DCB_ATTR_IEEE | NLA_F_NESTED};
  nlattr attribute{static_cast<uint16_t>(4 + sizeof(ieee_pfc)), DCB_ATTR_IEEE_PFC};
  ieee_pfc pfc{};
  pfc.pfc_en = 0x18;
  pfc.requests[3] = 5;
  pfc.requests[4] = 6;
  pfc.indications[3] = 7;
  uint8_t* at = message.data();
  memcpy(at, &header, sizeof(header));
  memcpy(at += sizeof(header) + 4, &ieee, sizeof(ieee));
  memcpy(at += 4, &attribute, sizeof(attribute));
  memcpy(at += 4, &pfc, sizeof(pfc));
  return message;
}

TEST(Dcb, ReadsPrioritiesAndFrames) {
  NetdevFacts netdev;
  ParseDcbAnswer(DcbAnswer(), &netdev);
  EXPECT_EQ(netdev.pfc_priorities, 0x18);
  ASSERT_EQ(netdev.counters.size(), 2u);
  EXPECT_EQ(netdev.counters[0].value, 11u);
  EXPECT_EQ(netdev.counters[1].value, 7u);
}

TEST(Dcb, SurvivesHalfAMessageAndAnError) {
  const std::vector<uint8_t> whole = DcbAnswer();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    // Cut off, and honest about it.
    std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    NetdevFacts netdev;
    ParseDcbAnswer(cut, &netdev);
    EXPECT_FALSE(netdev.pfc_priorities.has_value()) << bytes;
    if (bytes < sizeof(nlmsghdr)) continue;
    auto length = static_cast<uint32_t>(bytes);
    memcpy(cut.data(), &length, sizeof(length));
    ParseDcbAnswer(cut, &netdev);
    EXPECT_FALSE(netdev.pfc_priorities.has_value()) << bytes;
  }
  std::vector<uint8_t> error = whole;
  reinterpret_cast<nlmsghdr*>(error.data())->nlmsg_type = NLMSG_ERROR;
  NetdevFacts netdev;
  ParseDcbAnswer(error, &netdev);
  EXPECT_FALSE(netdev.pfc_priorities.has_value());
}

TEST(Netdevs, AskingForOneThatIsNotThereChangesNothing) {
  NetdevFacts netdev;
  netdev.name = "no_such_device_with_a_long_name";
  AskNetdev(&netdev);
  netdev.name = "";
  AskNetdev(&netdev);
  EXPECT_TRUE(netdev.counters.empty());
  EXPECT_FALSE(netdev.pfc_priorities.has_value());
  EXPECT_FALSE(netdev.global_pause.has_value());
}

TEST(Address, Kinds) {
  EXPECT_TRUE(IsIpv4(ParseAddress("10.0.0.1")));
  EXPECT_FALSE(IsIpv4(ParseAddress("2001:db8::1")));
  EXPECT_TRUE(IsLinkLocal(ParseAddress("fe80::1")));
  EXPECT_TRUE(IsLinkLocal(ParseAddress("169.254.3.4")));
  EXPECT_FALSE(IsLinkLocal(ParseAddress("10.0.0.1")));
  EXPECT_TRUE(IsLoopback(ParseAddress("127.0.0.5")));
  EXPECT_TRUE(IsLoopback(ParseAddress("::1")));
  EXPECT_FALSE(IsLoopback(ParseAddress("::")));
  EXPECT_EQ(ToText(ParseAddress("10.0.0.1")), "10.0.0.1");
  EXPECT_EQ(ToText(ParseAddress("2001:db8::1")), "2001:db8::1");
  EXPECT_EQ(ParseAddress("nonsense"), IpAddress{});
}

TEST(Bytes, ReadWell) {
  EXPECT_EQ(FormatBytes(0), "0 bytes");
  EXPECT_EQ(FormatBytes(599040), "585 KiB");
  EXPECT_EQ(FormatBytes(8 << 20), "8 MiB");
  EXPECT_EQ(FormatBytes(0xffffffff), "4 GiB");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(FormatBytes(kUnlimited), "unlimited");
}

}  // namespace
}  // namespace verbena::doctor
