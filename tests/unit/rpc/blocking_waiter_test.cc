// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/blocking_waiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "verbena/tests/support/status_matchers.h"
#include "verbena/tests/support/wait.h"

namespace verbena {
namespace {

constexpr int64_t kLongNs = 20'000'000'000;

TEST(BlockingWaiter, IsDoneWhenItWasFinishedAndHasTheStatus) {
  BlockingWaiter waiter;
  EXPECT_FALSE(waiter.done());
  waiter.Finish(absl::NotFoundError("gone"));
  EXPECT_TRUE(waiter.done());
  EXPECT_THAT(waiter.status(), Is(absl::StatusCode::kNotFound, "gone"));
}

TEST(BlockingWaiter, DoesNotSleepWhenItIsDoneAlready) {
  BlockingWaiter waiter;
  waiter.Finish(absl::OkStatus());
  const auto start = std::chrono::steady_clock::now();
  waiter.Wait(kLongNs);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(BlockingWaiter, ReturnsAfterItsBoundThoughNobodyFinishesIt) {
  BlockingWaiter waiter;
  waiter.Wait(1'000'000);
  waiter.Wait(1'000'000);  // Marked as sleeping from the first time.
  waiter.Wait(0);
  EXPECT_FALSE(waiter.done());
  waiter.Finish(absl::OkStatus());
  EXPECT_TRUE(waiter.done());
}

TEST(BlockingWaiter, IsWokenFromALongSleep) {
  BlockingWaiter waiter;
  std::atomic<bool> started{false};
  const auto start = std::chrono::steady_clock::now();
  std::thread finisher([&] {
    WaitUntil([&] { return started.load(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    waiter.Finish(absl::CancelledError("woken"));
  });
  started = true;
  while (!waiter.done()) waiter.Wait(kLongNs);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_THAT(waiter.status(), Is(absl::StatusCode::kCancelled, "woken"));
  finisher.join();
}

// The waiter may return and be destroyed while Finish is still on its way out.
TEST(BlockingWaiter, LosesNoWakeUpInManyRounds) {
  constexpr int kRounds = 20'000;
  std::atomic<BlockingWaiter*> current{nullptr};
  std::thread finisher([&] {
    for (int i = 0; i < kRounds; ++i) {
      BlockingWaiter* waiter;
      while ((waiter = current.exchange(nullptr)) == nullptr) std::this_thread::yield();
      waiter->Finish(i % 2 == 0 ? absl::OkStatus() : absl::InternalError("odd"));
    }
  });
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) {
    BlockingWaiter waiter;
    current = &waiter;
    if (i % 3 == 0) std::this_thread::yield();
    while (!waiter.done()) waiter.Wait(kLongNs);
    ASSERT_EQ(waiter.status().ok(), i % 2 == 0);
  }
  finisher.join();
  // A lost wake-up shows as a sleep of 20 seconds.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

}  // namespace
}  // namespace verbena
