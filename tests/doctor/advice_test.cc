// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/advice.h"

#include <algorithm>
#include <cerrno>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "verbena/tests/doctor/facts_for_test.h"

namespace verbena::doctor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Advice> AdviceFor(const Facts& facts) {
  return Advise(facts, Judge(facts, Family::kAny));
}

std::vector<Advice> AdviceAfter(const std::function<void(Facts*)>& change) {
  Facts facts = HealthyRoce();
  change(&facts);
  return AdviceFor(facts);
}

std::vector<std::string> Ids(const std::vector<Advice>& advice) {
  std::vector<std::string> ids;
  for (const Advice& one : advice) ids.push_back(one.id);
  return ids;
}

TEST(Advice, IsSilentWhenAllIsWell) { EXPECT_THAT(Ids(AdviceFor(HealthyRoce())), IsEmpty()); }

TEST(Advice, IsCompleteForEveryReason) {
  const std::vector<std::function<void(Facts*)>> changes = {
      [](Facts* facts) { facts->host.uverbs_module = false; },
      [](Facts* facts) { facts->devices.clear(); },
      [](Facts* facts) { facts->devices[0].node.exists = false; },
      [](Facts* facts) { facts->devices[0].node.open_errno = EPERM; },
      [](Facts* facts) { facts->devices[0].node.open_errno = ENODEV; },
      [](Facts* facts) { facts->devices[0].verbs.listed = false; },
      [](Facts* facts) {
        facts->devices[0].verbs.capabilities.reliable_connection.support = Support::kNo;
      },
      [](Facts* facts) { facts->host.memlock_bytes = 0; },
      [](Facts* facts) { facts->devices[0].ports[0].state = "DOWN"; },
      [](Facts* facts) { facts->host.connection_manager.exists = false; },
      [](Facts* facts) { facts->host.routes.clear(); },
      [](Facts* facts) {
        facts->host.routes.clear();
        facts->netdevs[0].name = "veth7";
      },
  };
  for (const auto& change : changes) {
    Facts facts = HealthyRoce();
    change(&facts);
    const Verdict verdict = Judge(facts, Family::kAny);
    const std::vector<Advice> advice = Advise(facts, verdict);
    ASSERT_FALSE(advice.empty()) << Name(verdict.reason);
    EXPECT_EQ(advice[0].severity, Severity::kBlocks);
    EXPECT_EQ(advice[0].id, Name(verdict.reason));
    for (const Advice& one : advice) {
      EXPECT_NE(one.subject, "") << one.id;
      EXPECT_NE(one.what, "") << one.id;
      EXPECT_NE(one.why, "") << one.id;
      EXPECT_FALSE(one.commands.empty()) << one.id;
    }
  }
}

TEST(Advice, NamesTheRdmaDriverOfANicThatIsHere) {
  Facts facts = HealthyRoce();
  facts.devices.clear();
  EXPECT_THAT(AdviceFor(facts)[0].commands, ElementsAre("modprobe mlx5_ib"));
  facts.netdevs[0].driver = "e1000e";
  EXPECT_THAT(AdviceFor(facts)[0].commands, Contains("rdma link add rxe0 type rxe netdev eth0"));
}

TEST(Advice, OfADeviceBesideAUsableOneIsANote) {
  std::vector<Advice> advice = AdviceAfter([](Facts* facts) {
    facts->devices.push_back(facts->devices[0]);
    facts->devices[1].name = "mlx5_1";
    facts->devices[1].ports[0].state = "DOWN";
  });
  ASSERT_THAT(Ids(advice), ElementsAre("port_down"));
  EXPECT_EQ(advice[0].severity, Severity::kNote);
  EXPECT_EQ(advice[0].subject, "mlx5_1");
}

TEST(Advice, PutsTheMostImportantFirst) {
  std::vector<Advice> advice = AdviceAfter([](Facts* facts) {
    facts->host.fork = ForkState::kUnsafe;               // Note.
    facts->host.memlock_bytes = uint64_t{8} << 20;       // Risk.
    facts->devices[0].ports[0].mtu_active_bytes = 1024;  // Slow.
    facts->host.routes.clear();                          // Blocks.
    facts->netdevs[0].pfc_priorities = 0;                // Risk.
  });
  EXPECT_THAT(Ids(advice),
              ElementsAre("no_address", "memlock_low", "flow_control", "mtu_low", "fork_unsafe"));
}

TEST(Advice, LockedMemoryThatAllowsFewConnections) {
  std::vector<Advice> advice =
      AdviceAfter([](Facts* facts) { facts->host.memlock_bytes = uint64_t{8} << 20; });
  ASSERT_THAT(Ids(advice), ElementsAre("memlock_low"));
  EXPECT_EQ(advice[0].what,
            "Locked memory is limited to 8 MiB: 14 connections with default options");
  EXPECT_THAT(Ids(AdviceAfter([](Facts* facts) { facts->host.memlock_bytes = uint64_t{8} << 30; })),
              IsEmpty());
}

TEST(Advice, FlowControlThatIsOffOrNotKnown) {
  std::vector<Advice> off = AdviceAfter([](Facts* facts) { facts->netdevs[0].pfc_priorities = 0; });
  ASSERT_THAT(Ids(off), ElementsAre("flow_control"));
  EXPECT_EQ(off[0].severity, Severity::kRisk);
  EXPECT_THAT(off[0].commands, Contains("dcb pfc set dev eth0 prio-pfc all:off 3:on"));
  std::vector<Advice> unknown =
      AdviceAfter([](Facts* facts) { facts->netdevs[0].pfc_priorities.reset(); });
  ASSERT_THAT(Ids(unknown), ElementsAre("flow_control"));
  EXPECT_EQ(unknown[0].severity, Severity::kNote);
}

TEST(Advice, CongestionNotificationThatIsOff) {
  std::vector<Advice> advice =
      AdviceAfter([](Facts* facts) { facts->netdevs[0].ecn_priorities = 0; });
  ASSERT_THAT(Ids(advice), ElementsAre("congestion_notification"));
  EXPECT_EQ(advice[0].severity, Severity::kRisk);
}

TEST(Advice, ASoftwareDeviceNeedsNoFlowControl) {
  std::vector<Advice> advice = AdviceAfter([](Facts* facts) {
    facts->devices[0].software = true;
    facts->netdevs[0].pfc_priorities.reset();
  });
  EXPECT_THAT(Ids(advice), ElementsAre("software_device"));
}

TEST(Advice, MtuNamesTheNetDeviceThatBoundsIt) {
  std::vector<Advice> advice = AdviceAfter([](Facts* facts) {
    facts->netdevs[0].mtu_bytes = 1500;
    facts->devices[0].ports[0].mtu_active_bytes = 1024;
  });
  ASSERT_THAT(Ids(advice), ElementsAre("mtu_low"));
  EXPECT_EQ(advice[0].what,
            "RDMA packets carry 1024 bytes and could carry 4096: the MTU of eth0 is 1500");
  // A device that can do no more is as it should be.
  EXPECT_THAT(Ids(AdviceAfter([](Facts* facts) {
                facts->devices[0].ports[0].mtu_active_bytes = 2048;
                facts->devices[0].ports[0].mtu_max_bytes = 2048;
              })),
              IsEmpty());
}

TEST(Advice, OnlyRoceVersion1) {
  EXPECT_THAT(Ids(AdviceAfter([](Facts* facts) {
                std::vector<GidFacts>& gids = facts->devices[0].ports[0].gids;
                gids = {gids[0], gids[2]};
              })),
              ElementsAre("roce_v1"));
}

TEST(Advice, ControlGroupWithFewObjects) {
  std::vector<Advice> advice = AdviceAfter([](Facts* facts) {
    facts->host.cgroup_rdma = {{"mlx5_0", kUnlimited, 100}};
  });
  ASSERT_THAT(Ids(advice), ElementsAre("cgroup_rdma_low"));
  EXPECT_THAT(advice[0].what, HasSubstr("hca_handle=unlimited, hca_object=100"));
}

TEST(Advice, CountersAreNamedByWhatTheyMean) {
  std::vector<Advice> advice = AdviceAfter([](Facts* facts) {
    facts->devices[0].ports[0].counters = {{"hw_counters", "local_ack_timeout_err", 3},
                                           {"hw_counters", "rnr_nak_retry_err", 4},
                                           {"hw_counters", "np_cnp_sent", 5},
                                           {"hw_counters", "rx_write_requests", 6}};
    facts->netdevs[0].counters = {{"statistics", "rx_dropped", 7},
                                  {"ethtool", "rx_prio3_pause", 8}};
  });
  ASSERT_THAT(Ids(advice),
              ElementsAre("counters_discard", "counters_retransmission",
                          "counters_receiver_not_ready", "counters_congestion", "counters_pause"));
  EXPECT_EQ(advice[0].what, "Packets were thrown away for lack of buffers: rx_dropped 7");
  EXPECT_THAT(advice[3].severity, Severity::kNote);
}

TEST(Advice, PciLinkBelowItsBest) {
  EXPECT_THAT(Ids(AdviceAfter([](Facts* facts) { facts->devices[0].pci->link_width = 8; })),
              ElementsAre("pci_link"));
  EXPECT_THAT(
      Ids(AdviceAfter([](Facts* facts) { facts->devices[0].pci->link_speed = "8.0 GT/s PCIe"; })),
      ElementsAre("pci_link"));
}

TEST(Advice, RelaxedOrderingOffButNotUnknown) {
  EXPECT_THAT(
      Ids(AdviceAfter([](Facts* facts) { facts->devices[0].pci->relaxed_ordering = false; })),
      ElementsAre("relaxed_ordering"));
  EXPECT_THAT(
      Ids(AdviceAfter([](Facts* facts) { facts->devices[0].pci->relaxed_ordering.reset(); })),
      IsEmpty());
}

TEST(Advice, IwarpHasNoWriteWithImmediate) {
  std::vector<Advice> advice = AdviceAfter([](Facts* facts) {
    facts->devices[0].transport = Transport::kIwarp;
    facts->devices[0].verbs.capabilities.write_with_imm.support = Support::kNo;
  });
  EXPECT_THAT(Ids(advice), ElementsAre("no_write_with_imm"));
}

}  // namespace
}  // namespace verbena::doctor
