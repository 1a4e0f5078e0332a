// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/clock.h"

#include <gtest/gtest.h>
#include <time.h>

namespace verbena {
namespace {

int64_t MonotonicNs() {
  timespec now;
  EXPECT_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

TEST(SystemClock, ReadsMonotonicTimeInNanoseconds) {
  SystemClock clock;
  int64_t before = MonotonicNs();
  int64_t reading = clock.NowNs();
  int64_t after = MonotonicNs();
  EXPECT_GE(reading, before);
  EXPECT_LE(reading, after);
}

TEST(SystemClock, TwoClocksTellTheSameTime) {
  SystemClock first;
  SystemClock second;
  int64_t last = first.NowNs();
  for (int i = 0; i < 1000; ++i) {
    int64_t now = (i % 2 == 0 ? second : first).NowNs();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(Clock, CanBeGivenVirtualTime) {
  struct ManualClock : Clock {
    int64_t NowNs() const override { return now_ns; }
    int64_t now_ns = 0;
  } manual;
  const Clock& clock = manual;
  manual.now_ns = 42;
  EXPECT_EQ(clock.NowNs(), 42);
}

}  // namespace
}  // namespace verbena
