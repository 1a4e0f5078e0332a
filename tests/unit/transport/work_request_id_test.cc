// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/work_request_id.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(WorkRequestId, KeepsTheOwnerAndTheSlotOfAReceive) {
  const WorkRequestId id = WorkRequestId::Receive({.index = 0xfffe, .generation = 0xffff}, 4095);
  EXPECT_EQ(id.value(), 0xfffeffff00000fffu);
  EXPECT_EQ(id.endpoint(), (EndpointId{0xfffe, 0xffff}));
  EXPECT_FALSE(id.is_send());
  EXPECT_EQ(id.slot(), 4095u);
}

TEST(WorkRequestId, KeepsTheOwnerAndBothCountsOfASend) {
  const WorkRequestId id = WorkRequestId::Send({.index = 3, .generation = 7}, 0x1234, 0x56);
  EXPECT_EQ(id.value(), 0x0003000780561234u);
  EXPECT_EQ(id.endpoint(), (EndpointId{3, 7}));
  EXPECT_TRUE(id.is_send());
  EXPECT_EQ(id.SendCount(0), 0x1234u);
  EXPECT_EQ(id.SlotCount(0), 0x56u);
}

TEST(WorkRequestId, GivesBackCountsThatWrappedAround) {
  // What is asked for, and the count it is at least, on both sides of 16, 14 and 32 bits.
  struct {
    uint32_t at_least;
    uint32_t count;
  } const cases[] = {{0, 0},
                     {0xffff, 0x10000},
                     {0xfff0, 0x1000f},
                     {0x3ffe, 0x4001},
                     {0x12345, 0x12345},
                     {0x12345, 0x12345 + 4096},
                     {0xfffffff0, 0x00000010},
                     {0xffffffff, 0x00000000}};
  for (const auto& c : cases) {
    const WorkRequestId id = WorkRequestId::Send({}, c.count, c.count);
    EXPECT_EQ(id.SendCount(c.at_least), c.count) << std::hex << c.at_least;
    EXPECT_EQ(id.SlotCount(c.at_least), c.count) << std::hex << c.at_least;
  }
}

TEST(WorkRequestId, GivesBackTheFurthestCountsItPromises) {
  for (uint32_t at_least : {0u, 1u, 0x3fffu, 0xabcdefu, 0xffff8000u}) {
    EXPECT_EQ(WorkRequestId::Send({}, at_least + 65535, 0).SendCount(at_least), at_least + 65535);
    EXPECT_EQ(WorkRequestId::Send({}, 0, at_least + 16383).SlotCount(at_least), at_least + 16383);
  }
}

TEST(WorkRequestId, TellsAProbeFromASendAndKeepsItsCounts) {
  const WorkRequestId id = WorkRequestId::Probe({.index = 3, .generation = 7}, 0x1234, 0x56);
  EXPECT_EQ(id.value(), 0x00030007c0561234u);
  EXPECT_TRUE(id.is_send());
  EXPECT_TRUE(id.is_probe());
  EXPECT_EQ(id.SendCount(0), 0x1234u);
  EXPECT_EQ(id.SlotCount(0), 0x56u);
  EXPECT_FALSE(WorkRequestId::Send({}, 0xffffffff, 0xffffffff).is_probe());
}

TEST(WorkRequestId, NeverMistakesASendForAReceive) {
  EXPECT_TRUE(WorkRequestId::Send({}, 0, 0).is_send());
  EXPECT_TRUE(WorkRequestId::Send({0xffff, 0xffff}, 0xffffffff, 0xffffffff).is_send());
  EXPECT_EQ(WorkRequestId::Send({1, 2}, 0xffffffff, 0xffffffff).endpoint(), (EndpointId{1, 2}));
  EXPECT_FALSE(WorkRequestId::Receive({0xffff, 0xffff}, 0x7fffffff).is_send());
}

}  // namespace
}  // namespace verbena
