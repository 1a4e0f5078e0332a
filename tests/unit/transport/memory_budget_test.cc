// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/memory_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <latch>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "verbena/tests/support/status_matchers.h"

namespace verbena {
namespace {

constexpr uint64_t kEverything = std::numeric_limits<uint64_t>::max();

TEST(MemoryBudget, TakesItsLimitAndNotAByteMore) {
  MemoryBudget budget("a budget", 100);
  EXPECT_EQ(budget.bytes_max(), 100u);
  EXPECT_TRUE(budget.TryCharge(60));
  EXPECT_FALSE(budget.TryCharge(41));
  EXPECT_EQ(budget.bytes_in_use(), 60u) << "a refusal charges nothing";
  EXPECT_TRUE(budget.TryCharge(40));
  EXPECT_FALSE(budget.TryCharge(1));
  EXPECT_EQ(budget.bytes_in_use(), 100u);
}

TEST(MemoryBudget, HasRoomAgainForWhatWasRefunded) {
  MemoryBudget budget("a budget", 100);
  ASSERT_TRUE(budget.TryCharge(100));
  budget.Refund(30);
  EXPECT_EQ(budget.bytes_in_use(), 70u);
  EXPECT_FALSE(budget.TryCharge(31));
  EXPECT_TRUE(budget.TryCharge(30));
}

TEST(MemoryBudget, RefusesSumsThatOverflow) {
  MemoryBudget budget("a budget", 100);
  ASSERT_TRUE(budget.TryCharge(1));
  EXPECT_FALSE(budget.TryCharge(kEverything));
  MemoryBudget endless("endless", kEverything);
  ASSERT_TRUE(endless.TryCharge(2));
  EXPECT_FALSE(endless.TryCharge(kEverything - 1));
  EXPECT_TRUE(endless.TryCharge(kEverything - 2));
}

TEST(MemoryBudget, NamesItselfTheNeedAndARemedy) {
  MemoryBudget budget("the memory budget of the test", 16384, "raise TestOptions::budget");
  ASSERT_TRUE(budget.TryCharge(8192));
  EXPECT_EQ(budget.Exhausted(16384),
            absl::ResourceExhaustedError(
                "the memory budget of the test is exhausted: 8192 of 16384 bytes are in use and "
                "16384 more are needed: raise TestOptions::budget, or hold fewer Buffers"));
  EXPECT_THAT(budget.Exhausted(16385), Is(absl::StatusCode::kResourceExhausted,
                                          "raise TestOptions::budget, or ask for less at once"));
}

TEST(MemoryBudget, OfTheProcessIsOneAndHalfOfTheHostsMemory) {
  const std::shared_ptr<MemoryBudget>& budget = MemoryBudget::OfProcess();
  EXPECT_EQ(budget, MemoryBudget::OfProcess());
  std::ifstream file("/proc/meminfo");
  std::string word;
  uint64_t total_kib = 0;
  ASSERT_TRUE(file >> word >> total_kib);
  ASSERT_EQ(word, "MemTotal:");
  EXPECT_EQ(budget->bytes_max(), total_kib * 1024 / 2);
  EXPECT_THAT(budget->Exhausted(1), Is(absl::StatusCode::kResourceExhausted,
                                       "the memory budget of the process is exhausted"));
}

TEST(MemoryBudget, IsNeverExceededByFourThreads) {
  constexpr uint64_t kMax = 1000;
  MemoryBudget budget("a budget", kMax);
  std::atomic<uint64_t> held{0};
  std::atomic<uint64_t> held_max{0};
  std::atomic<int> refusals{0};
  std::latch start(4);
  std::vector<std::thread> threads;
  for (uint64_t bytes : {300u, 350u, 400u, 450u}) {
    threads.emplace_back([&, bytes] {
      start.arrive_and_wait();
      for (int i = 0; i < 20'000; ++i) {
        if (!budget.TryCharge(bytes)) {
          ++refusals;
          std::this_thread::yield();
          continue;
        }
        const uint64_t now = held.fetch_add(bytes) + bytes;
        uint64_t max = held_max.load();
        while (now > max && !held_max.compare_exchange_weak(max, now)) {
        }
        if (i % 16 == 0) std::this_thread::yield();  // Let others try meanwhile.
        held.fetch_sub(bytes);
        budget.Refund(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(held_max.load(), kMax);
  EXPECT_GT(refusals.load(), 0) << "nobody ever met the limit";
  EXPECT_EQ(budget.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace verbena
