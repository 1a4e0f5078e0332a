// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic with times far away: no duration that a caller can write may overflow into one that
// means something else. UndefinedBehaviorSanitizer looks on.

#include "verbena/rpc/client_context.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace verbena {
namespace {

using std::chrono::steady_clock;

int64_t NowNs() { return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count(); }

// The deadline less now, in seconds.
template <class Duration>
double SecondsAfterTimeout(Duration timeout) {
  ClientContext context;
  context.set_timeout(timeout);
  EXPECT_NE(context.deadline_ns(), ClientContext::kNoDeadline);
  return static_cast<double>(context.deadline_ns() - NowNs()) * 1e-9;
}

template <class Duration>
void ExpectNoDeadline(Duration timeout) {
  ClientContext context;
  context.set_timeout(timeout);
  EXPECT_EQ(context.deadline_ns(), ClientContext::kNoDeadline);
}

template <class Duration>
void ExpectPassed(Duration timeout) {
  ClientContext context;
  context.set_timeout(timeout);
  EXPECT_LE(context.deadline_ns(), NowNs());
}

TEST(ClientContext, HasNoDeadlineByDefault) {
  EXPECT_EQ(ClientContext().deadline_ns(), ClientContext::kNoDeadline);
  EXPECT_FALSE(ClientContext().cancelled());
}

TEST(ClientContext, TurnsATimeoutOfAnyUnitIntoADeadline) {
  EXPECT_NEAR(SecondsAfterTimeout(std::chrono::hours(1)), 3600, 10);
  EXPECT_NEAR(SecondsAfterTimeout(std::chrono::milliseconds(60'000)), 60, 10);
  EXPECT_NEAR(SecondsAfterTimeout(std::chrono::nanoseconds(60'000'000'000)), 60, 10);
  EXPECT_NEAR(SecondsAfterTimeout(std::chrono::duration<double>(60.5)), 60.5, 10);
  EXPECT_NEAR(SecondsAfterTimeout(std::chrono::duration<float, std::ratio<3600>>(0.5f)), 1800, 10);
  EXPECT_NEAR(SecondsAfterTimeout(std::chrono::hours(24 * 365)), 31'536'000, 10);
}

TEST(ClientContext, TurnsATimeOfAnyClockIntoADeadline) {
  ClientContext steady;
  steady.set_deadline(steady_clock::now() + std::chrono::minutes(5));
  EXPECT_NEAR(static_cast<double>(steady.deadline_ns() - NowNs()) * 1e-9, 300, 10);
  ClientContext system;
  system.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
  EXPECT_NEAR(static_cast<double>(system.deadline_ns() - NowNs()) * 1e-9, 300, 10);
}

TEST(ClientContext, TakesTheLongestDurationsForNoDeadline) {
  ExpectNoDeadline(std::chrono::hours::max());
  ExpectNoDeadline(std::chrono::seconds::max());
  ExpectNoDeadline(std::chrono::milliseconds::max());
  ExpectNoDeadline(std::chrono::nanoseconds::max());
  ExpectNoDeadline(std::chrono::duration<double>::max());
  ExpectNoDeadline(std::chrono::duration<double>(std::numeric_limits<double>::infinity()));
  ClientContext context;
  context.set_deadline(steady_clock::time_point::max());
  EXPECT_EQ(context.deadline_ns(), ClientContext::kNoDeadline);
  ClientContext system;
  system.set_deadline(std::chrono::system_clock::time_point::max());
  EXPECT_EQ(system.deadline_ns(), ClientContext::kNoDeadline);
  ClientContext coarse;
  coarse.set_deadline(
      std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>::max());
  EXPECT_EQ(coarse.deadline_ns(), ClientContext::kNoDeadline);
}

TEST(ClientContext, TakesTheShortestDurationsForADeadlineThatHasPassed) {
  ExpectPassed(std::chrono::seconds(0));
  ExpectPassed(std::chrono::seconds(-1));
  ExpectPassed(std::chrono::hours(-24 * 365 * 200));
  ExpectPassed(std::chrono::hours::min());
  ExpectPassed(std::chrono::seconds::min());
  ExpectPassed(std::chrono::nanoseconds::min());
  ExpectPassed(std::chrono::duration<double>::min());
  ExpectPassed(std::chrono::duration<double>(-std::numeric_limits<double>::infinity()));
}

TEST(ClientContext, TakesTheEarliestTimesForADeadlineThatHasPassed) {
  ClientContext steady;
  steady.set_deadline(steady_clock::time_point::min());
  EXPECT_LE(steady.deadline_ns(), NowNs());
  ClientContext system;
  system.set_deadline(std::chrono::system_clock::time_point::min());
  EXPECT_LE(system.deadline_ns(), NowNs());
  ClientContext epoch;
  epoch.set_deadline(std::chrono::system_clock::time_point());
  EXPECT_LE(epoch.deadline_ns(), NowNs());
}

TEST(ClientContext, TakesATimeoutThatIsNoNumberForOneThatHasPassed) {
  ExpectPassed(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()));
}

TEST(ClientContext, RemembersThatItWasCancelled) {
  ClientContext context;
  context.TryCancel();
  context.TryCancel();
  EXPECT_TRUE(context.cancelled());
}

}  // namespace
}  // namespace verbena
