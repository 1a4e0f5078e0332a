// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <vector>

#include "verbena/transport/rdma/outstanding_requests.h"

namespace verbena::rdma {
namespace {

std::vector<uint32_t> Swept(OutstandingRequests& queue) {
  std::vector<uint32_t> sequences;
  queue.Sweep([&](uint32_t sequence) {
    // A wrong one would run through all of the 32 bits.
    if (sequences.size() < 100) sequences.push_back(sequence);
  });
  return sequences;
}

// As after so many requests, all of which are retired.
void PretendRetired(OutstandingRequests& queue, uint32_t count) {
  queue.Unpush(queue.next() - count);
  queue.Retire(count - 1);
}

TEST(OutstandingRequests, AreFullAtTheDepthThatWasAskedFor) {
  for (uint32_t depth : {1u, 3u, 4u, 5u}) {
    OutstandingRequests queue(depth);
    for (uint32_t i = 0; i < depth; ++i) {
      EXPECT_FALSE(queue.full()) << i << " of " << depth;
      queue.Push(i, true);
    }
    EXPECT_TRUE(queue.full()) << depth;
    queue.Retire(0);
    EXPECT_FALSE(queue.full()) << depth;
  }
}

TEST(OutstandingRequests, HaveNoRoomAtDepthZero) { EXPECT_TRUE(OutstandingRequests(0).full()); }

TEST(OutstandingRequests, GiveTheUsersIdBack) {
  OutstandingRequests queue(3);
  for (uint64_t id : {~uint64_t{0}, uint64_t{0}, uint64_t{7}}) queue.Push(id, true);
  EXPECT_EQ(queue.Retire(0), ~uint64_t{0});
  EXPECT_EQ(queue.Retire(1), 0u);
  EXPECT_EQ(queue.Retire(2), 7u);
}

TEST(OutstandingRequests, RetireAllBeforeThatOne) {
  OutstandingRequests queue(4);
  for (uint64_t id = 10; id < 14; ++id) queue.Push(id, id == 12);
  EXPECT_EQ(queue.Retire(2), 12u);
  EXPECT_EQ(queue.retired(), 3u);
  EXPECT_FALSE(queue.IsOutstanding(2));
  EXPECT_TRUE(queue.IsOutstanding(3));
  EXPECT_FALSE(queue.IsOutstanding(4));
}

TEST(OutstandingRequests, UnpushTakesTheNewestBack) {
  OutstandingRequests queue(2);
  queue.Push(1, true);
  queue.Push(2, true);
  queue.Unpush(1);
  EXPECT_EQ(queue.next(), 1u);
  EXPECT_FALSE(queue.full());
  EXPECT_FALSE(queue.IsOutstanding(1));
  queue.Push(3, true);
  EXPECT_EQ(queue.Retire(1), 3u);
}

TEST(OutstandingRequests, CountOverTheEndOfThe32Bits) {
  OutstandingRequests queue(3);
  PretendRetired(queue, 0xffff'fffe);
  for (uint64_t id = 1; id <= 3; ++id) queue.Push(id, true);
  EXPECT_TRUE(queue.full());
  EXPECT_EQ(queue.next(), 1u);
  EXPECT_FALSE(queue.IsOutstanding(0xffff'fffd));
  for (uint32_t sequence : {0xffff'fffeu, 0xffff'ffffu, 0u}) {
    EXPECT_TRUE(queue.IsOutstanding(sequence)) << sequence;
  }
  EXPECT_FALSE(queue.IsOutstanding(1));
  EXPECT_EQ(queue.Retire(0xffff'fffe), 1u);
  EXPECT_EQ(queue.Retire(0), 3u);
  EXPECT_FALSE(queue.full());
  EXPECT_FALSE(queue.IsOutstanding(0));
}

TEST(OutstandingRequests, AreSweptOnceAndInOrder) {
  OutstandingRequests queue(4);
  for (int i = 0; i < 3; ++i) queue.Push(0, true);
  queue.Retire(0);
  EXPECT_EQ(Swept(queue), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(Swept(queue), std::vector<uint32_t>());
  queue.Push(0, true);
  EXPECT_EQ(Swept(queue), std::vector<uint32_t>{3});
  queue.Retire(3);
  EXPECT_EQ(Swept(queue), std::vector<uint32_t>());
}

TEST(OutstandingRequests, AreSweptWithoutThoseThatCompleteInSilence) {
  OutstandingRequests queue(4);
  for (bool completes : {false, true, false, true}) queue.Push(0, completes);
  EXPECT_EQ(Swept(queue), (std::vector<uint32_t>{1, 3}));
}

// What was retired since the last sweep, or before the first, is more than half of the numbers.
TEST(OutstandingRequests, AreSweptAlsoLateInALongLife) {
  for (uint32_t retired : {0x7fff'ffffu, 0x8000'0001u, 0xf000'0000u, 0xffff'fffeu}) {
    OutstandingRequests queue(4);
    PretendRetired(queue, retired);
    for (int i = 0; i < 3; ++i) queue.Push(0, true);
    EXPECT_EQ(Swept(queue), (std::vector<uint32_t>{retired, retired + 1, retired + 2})) << retired;
    EXPECT_EQ(Swept(queue), std::vector<uint32_t>()) << retired;
  }
}

}  // namespace
}  // namespace verbena::rdma
