// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/gid_choice.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "verbena/tests/doctor/facts_for_test.h"

namespace verbena::doctor {
namespace {

using testing::HasSubstr;

GidChoice Choose(const Facts& facts, Family family = Family::kAny) {
  return ChooseGid(facts.devices[0], facts.devices[0].ports[0], facts, family);
}

// The index in the device's table of what was chosen; -1 for none.
int ChosenIndex(const Facts& facts, Family family = Family::kAny) {
  GidChoice choice = Choose(facts, family);
  if (!choice.chosen.has_value()) return -1;
  return static_cast<int>(facts.devices[0].ports[0].gids[*choice.chosen].index);
}

Facts WithGids(std::vector<GidFacts> gids) {
  Facts facts = HealthyRoce();
  facts.devices[0].ports[0].gids = std::move(gids);
  return facts;
}

TEST(GidChoice, TakesTheIpv4AddressOfRoceV2) { EXPECT_EQ(ChosenIndex(HealthyRoce()), 3); }

TEST(GidChoice, DoesNotDependOnTheOrderOfTheTable) {
  Facts facts = HealthyRoce();
  std::vector<GidFacts>& gids = facts.devices[0].ports[0].gids;
  std::sort(gids.begin(), gids.end(),
            [](const GidFacts& a, const GidFacts& b) { return a.index < b.index; });
  do {
    EXPECT_EQ(ChosenIndex(facts), 3);
  } while (std::next_permutation(
      gids.begin(), gids.end(),
      [](const GidFacts& a, const GidFacts& b) { return a.index < b.index; }));
}

TEST(GidChoice, TakesTheSameAddressWhenIndexesMove) {
  for (bool swapped : {false, true}) {
    Facts facts = WithGids({Gid(swapped ? 9 : 4, "10.0.0.7", GidType::kRoceV2, "eth0"),
                            Gid(swapped ? 4 : 9, "10.0.0.8", GidType::kRoceV2, "eth0")});
    facts.host.addresses.push_back({"eth0", ParseAddress("10.0.0.8")});
    EXPECT_EQ(ChosenIndex(facts), swapped ? 9 : 4);
    EXPECT_THAT(Choose(facts).why, HasSubstr("its own address"));
  }
}

TEST(GidChoice, RoceV2LinkLocalGoesBeforeAVersion1Address) {
  EXPECT_EQ(ChosenIndex(WithGids({Gid(0, "10.0.0.7", GidType::kRoceV1, "eth0"),
                                  Gid(1, "fe80::1", GidType::kRoceV2, "eth0")})),
            1);
}

TEST(GidChoice, AnAddressGoesBeforeALinkLocalOne) {
  Facts facts = WithGids({Gid(0, "fe80::1", GidType::kRoceV2, "eth0"),
                          Gid(1, "2001:db8::7", GidType::kRoceV2, "eth0")});
  facts.host.addresses.push_back({"eth0", ParseAddress("2001:db8::7")});
  EXPECT_EQ(ChosenIndex(facts), 1);
  EXPECT_THAT(Choose(facts).why, HasSubstr("link-local"));
}

TEST(GidChoice, FollowsTheFamily) {
  Facts facts = WithGids({Gid(5, "10.0.0.7", GidType::kRoceV2, "eth0"),
                          Gid(6, "2001:db8::7", GidType::kRoceV2, "eth0")});
  facts.host.addresses.push_back({"eth0", ParseAddress("2001:db8::7")});
  EXPECT_EQ(ChosenIndex(facts, Family::kAny), 5);
  EXPECT_EQ(ChosenIndex(facts, Family::kIpv4), 5);
  EXPECT_EQ(ChosenIndex(facts, Family::kIpv6), 6);
}

TEST(GidChoice, LeavesOutANetDeviceOfAnotherNamespace) {
  Facts facts = WithGids({Gid(0, "10.0.0.7", GidType::kRoceV2, "host_eth1"),
                          Gid(1, "10.0.0.7", GidType::kRoceV1, "eth0")});
  EXPECT_EQ(ChosenIndex(facts), 1);
  EXPECT_EQ(Choose(facts).opinions[0].note, "host_eth1 is not in this network namespace");
}

// The host's eth0 and the container's may share their name, not their address.
TEST(GidChoice, LeavesOutAnAddressThatNobodyHereHas) {
  Facts facts = WithGids({Gid(3, "192.168.5.5", GidType::kRoceV2, "eth0")});
  EXPECT_EQ(ChosenIndex(facts), -1);
  EXPECT_THAT(Choose(facts).opinions[0].note, HasSubstr("no interface"));
  EXPECT_EQ(Choose(facts).why, "none is usable");
}

TEST(GidChoice, SaysThatThereIsNone) { EXPECT_EQ(Choose(WithGids({})).why, "the port has no GID"); }

TEST(GidChoice, IwarpNeedsNone) {
  Facts facts = HealthyRoce();
  facts.devices[0].transport = Transport::kIwarp;
  EXPECT_EQ(ChosenIndex(facts), -1);
  EXPECT_EQ(Choose(facts).opinions.size(), 4u);
}

TEST(GidChoice, InfiniBandTakesThePortsOwn) {
  Facts facts = WithGids({Gid(0, "fe80::5", GidType::kInfiniBand, "")});
  facts.devices[0].ports[0].link_layer = LinkLayer::kInfiniBand;
  EXPECT_EQ(ChosenIndex(facts), 0);
}

}  // namespace
}  // namespace verbena::doctor
