// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/schedule.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"
#include "verbena/tools/rpc_bench/pass.h"

namespace verbena::bench {
namespace {

constexpr uint64_t kTicksPerSecond = 3'000'000'000;

TEST(Schedule, CallsStartEvenly) {
  Schedule schedule(1'000, kTicksPerSecond, 1'000'000);
  EXPECT_EQ(schedule.StartTicksOfCall(0), 1'000u);
  EXPECT_EQ(schedule.StartTicksOfCall(1), 4'000u);
  EXPECT_EQ(schedule.StartTicksOfCall(10), 31'000u);
}

TEST(Schedule, RoundingDoesNotAddUp) {
  // 3e9 / 7e6 is no whole number of ticks.
  Schedule schedule(0, kTicksPerSecond, 7'000'000);
  const uint64_t calls = uint64_t{7'000'000} * 3600;
  const double exact = 3600.0 * kTicksPerSecond;
  EXPECT_NEAR(static_cast<double>(schedule.StartTicksOfCall(calls)), exact,
              static_cast<double>(calls) / 65536);
}

TEST(Schedule, RatesBelowOneAndFarIntoTheFuture) {
  Schedule schedule(5, kTicksPerSecond, 0.01);
  EXPECT_EQ(schedule.StartTicksOfCall(1), 5u + 100 * kTicksPerSecond);
  // A week of calls every 100 s does not overflow.
  EXPECT_EQ(schedule.StartTicksOfCall(6'048), 5u + 604'800 * kTicksPerSecond);
}

TEST(Schedule, LatencyCountsFromTheIntendedStart) {
  Schedule schedule(0, kTicksPerSecond, 1'000'000);  // Every 3,000 ticks.
  EXPECT_EQ(schedule.LatencyTicks(0, 600), 600u);
  // Call 2 should have started at 6,000. The server was stalled, the call itself took 600 ticks.
  EXPECT_EQ(schedule.LatencyTicks(2, 90'600), 84'600u);
}

TEST(Schedule, AStallIsChargedToEveryCallThatItDelayed) {
  // One caller, 1,000 ticks a call, a call every 3,000 ticks; call 1 stalls for 30,000.
  Schedule schedule(0, kTicksPerSecond, 1'000'000);
  uint64_t now = 0;
  int late_calls = 0;
  for (uint64_t call = 0; call < 30; ++call) {
    now = std::max(now, schedule.StartTicksOfCall(call));
    now += call == 1 ? 30'000 : 1'000;
    if (schedule.LatencyTicks(call, now) > 1'000) ++late_calls;
  }
  // It ends at 33,000 and the caller gains 2,000 ticks a call: it is in time again with call 16.
  EXPECT_EQ(late_calls, 15);
}

TEST(Schedule, NeverNegative) {
  Schedule schedule(1'000, kTicksPerSecond, 1'000'000);
  EXPECT_EQ(schedule.LatencyTicks(0, 999), 0u);
}

TEST(PassLimits, CallsAreSplitWithoutLoss) {
  PassLimits limits;
  limits.calls_max = 10;
  EXPECT_EQ(limits.CallsOf(0, 3), 4u);
  EXPECT_EQ(limits.CallsOf(1, 3), 3u);
  EXPECT_EQ(limits.CallsOf(2, 3), 3u);
}

TEST(PassLimits, WarmUpIsAPartOfTheMeasurement) {
  Options options;
  options.seconds = 2;
  options.calls_max = 1000;
  EXPECT_EQ(PassLimits::WarmUp(options).seconds, 0.4);
  EXPECT_EQ(PassLimits::WarmUp(options).calls_max, 100u);
  EXPECT_EQ(PassLimits::Measurement(options).seconds, 2);
  EXPECT_EQ(PassLimits::Measurement(options).calls_max, 1000u);
}

}  // namespace
}  // namespace verbena::bench
