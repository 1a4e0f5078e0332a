// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/index_stack.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace verbena {
namespace {

// A table of ten whose next user can be held up: a pop between reading a link and using it, a push
// between setting one and using it.
class Table {
 public:
  uint32_t Next(uint32_t index) {
    const uint32_t next = links_[index].load(std::memory_order_relaxed);
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    return next;
  }
  void SetNext(uint32_t index, uint32_t next) {
    links_[index].store(next, std::memory_order_relaxed);
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
  }
  void set_meanwhile(std::function<void()> function) { meanwhile_ = std::move(function); }

 private:
  std::array<std::atomic<uint32_t>, 10> links_{};
  std::function<void()> meanwhile_;
};

class IndexStackTest : public testing::Test {
 protected:
  static constexpr int kNone = -1;
  int Pop() {
    uint32_t index;
    return stack_.TryPop(table_, &index) ? static_cast<int>(index) : kNone;
  }

  Table table_;
  IndexStack stack_;
};

TEST_F(IndexStackTest, IsEmptyAtFirst) { EXPECT_EQ(Pop(), kNone); }

TEST_F(IndexStackTest, IsLastInFirstOut) {
  for (uint32_t index : {0u, 9u, 4u}) stack_.Push(table_, index);
  EXPECT_EQ(Pop(), 4);
  stack_.Push(table_, 5);
  EXPECT_EQ(Pop(), 5);
  EXPECT_EQ(Pop(), 9);
  EXPECT_EQ(Pop(), 0);
  EXPECT_EQ(Pop(), kNone);
}

TEST_F(IndexStackTest, SharesATableWithOthers) {
  IndexStack other;
  stack_.Push(table_, 1);
  other.Push(table_, 2);
  stack_.Push(table_, 3);
  uint32_t index;
  ASSERT_TRUE(other.TryPop(table_, &index));
  EXPECT_EQ(index, 2u);
  EXPECT_FALSE(other.TryPop(table_, &index));
  EXPECT_EQ(Pop(), 3);
  EXPECT_EQ(Pop(), 1);
}

// 2 is on top of 1. While we are about to replace 2 with 1, another thread takes both and gives 2
// back. 1 is that thread's now.
TEST_F(IndexStackTest, IsNotDeceivedByATopThatWentAndCameBack) {
  stack_.Push(table_, 1);
  stack_.Push(table_, 2);
  table_.set_meanwhile([this] {
    EXPECT_EQ(Pop(), 2);
    EXPECT_EQ(Pop(), 1);
    stack_.Push(table_, 2);
  });
  EXPECT_EQ(Pop(), 2);
  EXPECT_EQ(Pop(), kNone) << "1 was taken by two";
}

TEST_F(IndexStackTest, LosesNoPushThatHappensDuringAnother) {
  table_.set_meanwhile([this] { stack_.Push(table_, 2); });
  stack_.Push(table_, 1);
  EXPECT_EQ(Pop(), 1);
  EXPECT_EQ(Pop(), 2);
  EXPECT_EQ(Pop(), kNone);
}

TEST_F(IndexStackTest, TriesAgainWhenTheTopChanges) {
  stack_.Push(table_, 1);
  table_.set_meanwhile([this] { stack_.Push(table_, 2); });
  EXPECT_EQ(Pop(), 2);
  EXPECT_EQ(Pop(), 1);
  stack_.Push(table_, 3);
  table_.set_meanwhile([this] { EXPECT_EQ(Pop(), 3); });
  EXPECT_EQ(Pop(), kNone);
}

TEST_F(IndexStackTest, GivesAnIndexToOneOfFourThreadsAtATime) {
  for (uint32_t index = 0; index < 3; ++index) stack_.Push(table_, index);
  std::array<int, 10> owner{};  // Not atomic: a data race for ThreadSanitizer when there are two.
  std::latch start(4);
  std::vector<std::thread> threads;
  for (int number = 1; number <= 4; ++number) {
    threads.emplace_back([&, number] {
      start.arrive_and_wait();
      for (int i = 0; i < 300'000; ++i) {
        uint32_t index;
        if (!stack_.TryPop(table_, &index)) continue;
        owner[index] = number;
        if (i % 64 == 0) std::this_thread::yield();
        ASSERT_EQ(owner[index], number);
        stack_.Push(table_, index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Pop() + Pop() + Pop(), 0 + 1 + 2);
  EXPECT_EQ(Pop(), kNone);
}

}  // namespace
}  // namespace verbena
