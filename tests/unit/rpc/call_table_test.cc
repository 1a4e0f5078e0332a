// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/call_table.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace verbena {
namespace {

using State = ClientCall::State;

ClientCall* AllocateSent(CallTable& table) {
  ClientCall* call = table.Allocate();
  if (call != nullptr) call->state = State::kSent;
  return call;
}

TEST(CallTable, GivesOutAsManyCallsAsItHasAndThenNone) {
  CallTable table(3, nullptr);
  std::set<ClientCall*> calls;
  for (int i = 0; i < 3; ++i) calls.insert(AllocateSent(table));
  EXPECT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls.count(nullptr), 0u);
  EXPECT_EQ(table.Allocate(), nullptr);
  EXPECT_EQ(table.in_use(), 3u);
  table.Free(*calls.begin());
  EXPECT_EQ(table.in_use(), 2u);
  EXPECT_EQ(table.Allocate(), *calls.begin());
}

TEST(CallTable, FindsACallOnlyWhileItWaitsForItsResponse) {
  CallTable table(4, nullptr);
  ClientCall* call = table.Allocate();
  call->state = State::kQueued;
  EXPECT_EQ(table.FindSent(call->id), nullptr) << "it was not sent";
  call->state = State::kSent;
  EXPECT_EQ(table.FindSent(call->id), call);
  const uint32_t id = call->id;
  table.Free(call);
  EXPECT_EQ(table.FindSent(id), nullptr) << "it has ended";
}

TEST(CallTable, DoesNotTakeALateResponseForTheNextCallInTheSameSlot) {
  CallTable table(1, nullptr);
  ClientCall* first = AllocateSent(table);
  const uint32_t first_id = first->id;
  table.Free(first);
  ClientCall* second = AllocateSent(table);
  ASSERT_EQ(second, first);
  EXPECT_NE(second->id, first_id);
  EXPECT_EQ(table.FindSent(first_id), nullptr);
  EXPECT_EQ(table.FindSent(second->id), second);
}

TEST(CallTable, RepeatsAnIdOnlyAfterAMillionCallsAndIsNeverZero) {
  CallTable table(1, nullptr);
  ClientCall* call = AllocateSent(table);
  const uint32_t first_id = call->id;
  // 2^20 generations of which generation 0 is left out.
  constexpr uint32_t kGenerations = (1u << 20) - 1;
  for (uint32_t i = 1; i < kGenerations; ++i) {
    table.Free(call);
    call = AllocateSent(table);
    ASSERT_NE(call->id, first_id) << "after " << i;
    ASSERT_NE(call->id, 0u);
    ASSERT_EQ(call->id % CallTable::kCapacityMax, 0u);
  }
  table.Free(call);
  EXPECT_EQ(AllocateSent(table)->id, first_id);
}

TEST(CallTable, FindsNothingForIdsItNeverGaveOut) {
  CallTable table(8, nullptr);
  const std::vector<ClientCall*> calls = {AllocateSent(table), AllocateSent(table)};
  EXPECT_EQ(table.FindSent(0), nullptr);
  EXPECT_EQ(table.FindSent(UINT32_MAX), nullptr);
  EXPECT_EQ(table.FindSent(calls[0]->id + 8), nullptr) << "an index behind the table";
  EXPECT_EQ(table.FindSent(calls[0]->id + 2), nullptr) << "a slot that is free";
  EXPECT_EQ(table.FindSent(calls[0]->id + CallTable::kCapacityMax), nullptr) << "the future";
  EXPECT_EQ(table.FindSent(calls[0]->id - CallTable::kCapacityMax), nullptr);
}

TEST(CallTable, KeepsTheIdsOfAFullTableApart) {
  CallTable table(CallTable::kCapacityMax, nullptr);
  std::set<uint32_t> ids;
  for (uint32_t i = 0; i < CallTable::kCapacityMax; ++i) ids.insert(AllocateSent(table)->id);
  EXPECT_EQ(ids.size(), CallTable::kCapacityMax);
  for (uint32_t id : ids) ASSERT_EQ(table.FindSent(id)->id, id);
}

TEST(CallTable, VisitsEachOutstandingCallAndLetsTheVisitorFreeIt) {
  CallTable table(5, nullptr);
  std::vector<ClientCall*> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(AllocateSent(table));
  calls[2]->state = State::kQueued;
  table.Free(calls[1]);
  std::set<ClientCall*> seen;
  table.ForEach([&](ClientCall& call) {
    seen.insert(&call);
    table.Free(&call);
  });
  EXPECT_EQ(seen, (std::set<ClientCall*>{calls[0], calls[2], calls[3]}));
  EXPECT_EQ(table.in_use(), 0u);
}

}  // namespace
}  // namespace verbena
