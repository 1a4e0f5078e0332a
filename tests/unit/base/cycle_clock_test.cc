// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/cycle_clock.h"

#include <gtest/gtest.h>

#include "verbena/base/clock.h"

namespace verbena {
namespace {

TEST(CycleClock, AgreesWithTheSystemClockWithinOnePerThousand) {
  CycleClock cycles;
  SystemClock system;
  // The outer readings bound the interval from above and the inner ones from below, wherever this
  // thread is preempted.
  int64_t outer_start = system.NowNs();
  uint64_t start = cycles.ReadTicks();
  int64_t inner_start = system.NowNs();
  while (system.NowNs() - inner_start < 50'000'000) {
  }
  int64_t inner_end = system.NowNs();
  uint64_t end = cycles.ReadTicks();
  int64_t outer_end = system.NowNs();

  double measured_ns = static_cast<double>(cycles.TicksToNs(end - start));
  EXPECT_GE(measured_ns, static_cast<double>(inner_end - inner_start) * 0.999);
  EXPECT_LE(measured_ns, static_cast<double>(outer_end - outer_start) * 1.001);
}

TEST(CycleClock, TicksNeverDecreaseOnOneThread) {
  CycleClock cycles;
  uint64_t last = cycles.ReadTicks();
  for (int i = 0; i < 100'000; ++i) {
    uint64_t now = cycles.ReadTicks();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(CycleClock, OneSecondOfTicksIsOneSecond) {
  CycleClock cycles;
  EXPECT_GE(cycles.ticks_per_second(), 100'000'000u);
  EXPECT_NEAR(static_cast<double>(cycles.TicksToNs(cycles.ticks_per_second())), 1e9, 10.0);
  EXPECT_EQ(cycles.NsToTicks(1'000'000'000), cycles.ticks_per_second());
  EXPECT_EQ(cycles.TicksToNs(0), 0u);
  if (!cycles.uses_tsc()) {
    EXPECT_EQ(cycles.ticks_per_second(), 1'000'000'000u);
  }
}

TEST(CycleClock, ConvertsADayWithoutOverflow) {
  CycleClock cycles;
  constexpr uint64_t kDayNs = 86'400'000'000'000;
  double there_and_back = static_cast<double>(cycles.TicksToNs(cycles.NsToTicks(kDayNs)));
  EXPECT_NEAR(there_and_back / static_cast<double>(kDayNs), 1.0, 1e-8);
}

TEST(CycleClock, MeasuresTheRateOncePerProcess) {
  CycleClock first;
  CycleClock second;
  EXPECT_EQ(first.ticks_per_second(), second.ticks_per_second());
  EXPECT_EQ(first.uses_tsc(), second.uses_tsc());
}

}  // namespace
}  // namespace verbena
