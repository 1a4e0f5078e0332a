// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/mpsc_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace verbena {
namespace {

TEST(MpscQueue, IsFirstInFirstOut) {
  MpscQueue<int> queue(4);
  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.TryPush(2));
  int value = 0;
  ASSERT_TRUE(queue.TryPop(&value));
  EXPECT_EQ(value, 1);
  ASSERT_TRUE(queue.TryPop(&value));
  EXPECT_EQ(value, 2);
}

TEST(MpscQueue, PopOfAnEmptyQueueLeavesTheValueAlone) {
  MpscQueue<int> queue(2);
  int value = 77;
  EXPECT_TRUE(queue.Empty());
  EXPECT_FALSE(queue.TryPop(&value));
  EXPECT_EQ(value, 77);
}

TEST(MpscQueue, RefusesWhenFullAndTakesAgainAfterOnePop) {
  MpscQueue<int> queue(4);
  EXPECT_EQ(queue.capacity(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.TryPush(i));
  EXPECT_FALSE(queue.TryPush(4));
  int value = -1;
  ASSERT_TRUE(queue.TryPop(&value));
  EXPECT_TRUE(queue.TryPush(4));
  EXPECT_FALSE(queue.TryPush(5));
  for (int expected = 1; expected <= 4; ++expected) {
    ASSERT_TRUE(queue.TryPop(&value));
    EXPECT_EQ(value, expected);
  }
  EXPECT_TRUE(queue.Empty());
}

TEST(MpscQueue, KeepsOrderOverManyRounds) {
  MpscQueue<int> queue(2);
  int next_in = 0;
  int next_out = 0;
  for (int round = 0; round < 1000; ++round) {
    while (queue.TryPush(next_in)) ++next_in;
    int value = -1;
    ASSERT_TRUE(queue.TryPop(&value));
    ASSERT_EQ(value, next_out++);
  }
  EXPECT_EQ(next_in - next_out, 1);
}

TEST(MpscQueue, RefusedValueStaysWithTheCaller) {
  MpscQueue<std::unique_ptr<int>> queue(2);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(2)));
  auto refused = std::make_unique<int>(3);
  EXPECT_FALSE(queue.TryPush(std::move(refused)));
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(*refused, 3);
}

TEST(MpscQueue, DestroysWhatIsStillQueued) {
  auto shared = std::make_shared<int>(5);
  {
    MpscQueue<std::shared_ptr<int>> queue(2);
    EXPECT_TRUE(queue.TryPush(shared));
    EXPECT_EQ(shared.use_count(), 2);
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(MpscQueue, PopDoesNotKeepTheValueAlive) {
  MpscQueue<std::shared_ptr<int>> queue(2);
  auto shared = std::make_shared<int>(5);
  EXPECT_TRUE(queue.TryPush(shared));
  std::shared_ptr<int> popped;
  ASSERT_TRUE(queue.TryPop(&popped));
  popped.reset();
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(MpscQueueDeathTest, CapacityIsAPowerOfTwo) {
  EXPECT_DEATH(MpscQueue<int>(3), "capacity 3");
  EXPECT_DEATH(MpscQueue<int>(1), "capacity 1");
  EXPECT_DEATH(MpscQueue<int>(0), "capacity 0");
}

struct Message {
  uint32_t producer = 0;
  uint32_t number = 0;
};

TEST(MpscQueue, LosesAndReordersNothingWithFourProducers) {
  constexpr uint32_t kProducers = 4;
  constexpr uint32_t kMessages = 50'000;
  MpscQueue<Message> queue(64);  // Small, so that it is often full and goes round many times.
  std::vector<std::thread> producers;
  for (uint32_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&queue, producer] {
      for (uint32_t number = 0; number < kMessages; ++number) {
        while (!queue.TryPush(Message{producer, number})) std::this_thread::yield();
      }
    });
  }
  std::array<uint32_t, kProducers> next_number = {};
  for (uint32_t received = 0; received < kProducers * kMessages;) {
    Message message;
    if (!queue.TryPop(&message)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_LT(message.producer, kProducers);
    EXPECT_EQ(message.number, next_number[message.producer]++);
    ++received;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(queue.Empty());
  for (uint32_t count : next_number) EXPECT_EQ(count, kMessages);
}

}  // namespace
}  // namespace verbena
