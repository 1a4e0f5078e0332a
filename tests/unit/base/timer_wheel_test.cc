// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/timer_wheel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "verbena/base/random.h"

namespace verbena {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;

struct NamedTimer : Timer {
  explicit NamedTimer(int name) : name(name) {}
  int name;
};

// The names of the timers that fire at `now_ns`.
std::vector<int> Fired(TimerWheel& wheel, int64_t now_ns) {
  std::vector<int> names;
  std::size_t count = wheel.Advance(
      now_ns, [&](Timer* timer) { names.push_back(static_cast<NamedTimer*>(timer)->name); });
  EXPECT_EQ(count, names.size());
  return names;
}

TEST(TimerWheel, FiresAtTheEndOfTheDeadlinesTick) {
  TimerWheel wheel(0);
  NamedTimer timer(1);
  wheel.Schedule(&timer, 5 * kMs + 1);
  EXPECT_THAT(Fired(wheel, 5 * kMs + 1), IsEmpty());
  EXPECT_THAT(Fired(wheel, 6 * kMs - 1), IsEmpty());
  EXPECT_TRUE(timer.IsScheduled());
  EXPECT_THAT(Fired(wheel, 6 * kMs), ElementsAre(1));
  EXPECT_FALSE(timer.IsScheduled());
  EXPECT_THAT(Fired(wheel, 7 * kMs), IsEmpty());
}

TEST(TimerWheel, FiresExactlyOnATickThatIsTheDeadline) {
  TimerWheel wheel(0);
  NamedTimer timer(1);
  wheel.Schedule(&timer, 5 * kMs);
  EXPECT_THAT(Fired(wheel, 5 * kMs - 1), IsEmpty());
  EXPECT_THAT(Fired(wheel, 5 * kMs), ElementsAre(1));
}

TEST(TimerWheel, FiresInOrderOfTicksWhenManyAreDueAtOnce) {
  TimerWheel wheel(0);
  // On three levels: 256 ticks and above are level 1, 65536 and above level 2.
  NamedTimer a(1), b(2), c(3), d(4);
  wheel.Schedule(&d, 70'000 * kMs);
  wheel.Schedule(&b, 300 * kMs);
  wheel.Schedule(&a, 2 * kMs);
  wheel.Schedule(&c, 301 * kMs);
  EXPECT_EQ(wheel.scheduled_count(), 4u);
  EXPECT_THAT(Fired(wheel, 100'000 * kMs), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(wheel.scheduled_count(), 0u);
}

TEST(TimerWheel, DeadlineInThePastFiresInTheNextAdvance) {
  TimerWheel wheel(10 * kMs);
  NamedTimer past(1), negative(2), now(3);
  wheel.Schedule(&past, 3 * kMs);
  wheel.Schedule(&negative, std::numeric_limits<int64_t>::min());
  wheel.Schedule(&now, 10 * kMs);
  EXPECT_LE(wheel.NextDeadlineHintNs(), 10 * kMs);
  EXPECT_THAT(Fired(wheel, 10 * kMs), ElementsAre(1, 2, 3));
}

TEST(TimerWheel, CancelledTimerDoesNotFire) {
  TimerWheel wheel(0);
  NamedTimer cancelled(1), kept(2);
  wheel.Schedule(&cancelled, 5 * kMs);
  wheel.Schedule(&kept, 5 * kMs);
  wheel.Cancel(&cancelled);
  EXPECT_FALSE(cancelled.IsScheduled());
  wheel.Cancel(&cancelled);  // Not scheduled: nothing happens.
  EXPECT_THAT(Fired(wheel, 5 * kMs), ElementsAre(2));
}

TEST(TimerWheel, ScheduleAgainMovesTheTimer) {
  TimerWheel wheel(0);
  NamedTimer timer(1);
  wheel.Schedule(&timer, 5 * kMs);
  wheel.Schedule(&timer, 9 * kMs);
  EXPECT_EQ(wheel.scheduled_count(), 1u);
  EXPECT_THAT(Fired(wheel, 8 * kMs), IsEmpty());
  wheel.Schedule(&timer, 8 * kMs);
  EXPECT_THAT(Fired(wheel, 8 * kMs), ElementsAre(1));
}

TEST(TimerWheel, TimeThatGoesBackwardsIsNoTime) {
  TimerWheel wheel(100 * kMs);
  NamedTimer timer(1);
  wheel.Schedule(&timer, 101 * kMs);
  EXPECT_THAT(Fired(wheel, 0), IsEmpty());
  EXPECT_THAT(Fired(wheel, -5), IsEmpty());
  EXPECT_THAT(Fired(wheel, 101 * kMs), ElementsAre(1));
}

TEST(TimerWheel, FiresAtEveryLevelsBoundaryOnTime) {
  for (int64_t start_tick : {0, 1, 255, 256, 65'535, 1'000'003}) {
    for (int64_t ticks :
         {int64_t{1}, int64_t{255}, int64_t{256}, int64_t{257}, int64_t{511}, int64_t{65'535},
          int64_t{65'536}, int64_t{65'792}, int64_t{16'777'215}, int64_t{16'777'216},
          int64_t{4'294'967'295}, int64_t{4'294'967'296}, int64_t{10'000'000'000}}) {
      TimerWheel wheel(start_tick * kMs);
      NamedTimer timer(1);
      wheel.Schedule(&timer, (start_tick + ticks) * kMs);
      EXPECT_THAT(Fired(wheel, (start_tick + ticks) * kMs - 1), IsEmpty()) << ticks;
      EXPECT_THAT(Fired(wheel, (start_tick + ticks) * kMs), ElementsAre(1)) << ticks;
    }
  }
}

TEST(TimerWheel, HintIsNeverWhenNothingIsScheduled) {
  TimerWheel wheel(0);
  EXPECT_EQ(wheel.NextDeadlineHintNs(), TimerWheel::kNever);
  NamedTimer timer(1);
  wheel.Schedule(&timer, 700 * kMs);
  wheel.Cancel(&timer);
  EXPECT_EQ(wheel.NextDeadlineHintNs(), TimerWheel::kNever);
}

TEST(TimerWheel, HintIsTheDeadlineWhenItIsNear) {
  TimerWheel wheel(0);
  NamedTimer near(1), far(2);
  wheel.Schedule(&far, 200 * kMs);
  EXPECT_EQ(wheel.NextDeadlineHintNs(), 200 * kMs);
  wheel.Schedule(&near, 5 * kMs + 3);
  EXPECT_EQ(wheel.NextDeadlineHintNs(), 6 * kMs);
  wheel.Cancel(&near);
  EXPECT_EQ(wheel.NextDeadlineHintNs(), 200 * kMs);
  wheel.Cancel(&far);
}

TEST(TimerWheel, SleepingByTheHintWakesAFewTimesPerTimer) {
  TimerWheel wheel(0);
  NamedTimer timer(1);
  const int64_t deadline_ns = 86'400'123 * kMs;  // A day.
  wheel.Schedule(&timer, deadline_ns);
  int wakes = 0;
  for (int64_t now_ns = 0; timer.IsScheduled(); ++wakes) {
    ASSERT_LT(wakes, 5);  // Once per level at most, and once for the deadline.
    ASSERT_GT(wheel.NextDeadlineHintNs(), now_ns);
    now_ns = wheel.NextDeadlineHintNs();
    ASSERT_LE(now_ns, deadline_ns);
    Fired(wheel, now_ns);
  }
}

TEST(TimerWheel, TakesTheEndOfTimeAsADeadline) {
  TimerWheel wheel(0);
  NamedTimer timer(1);
  wheel.Schedule(&timer, std::numeric_limits<int64_t>::max());
  EXPECT_GT(wheel.NextDeadlineHintNs(), 0);
  EXPECT_THAT(Fired(wheel, int64_t{1} << 60), IsEmpty());
  wheel.Cancel(&timer);
}

TEST(TimerWheel, CallbackMayScheduleTheSameTimerAgain) {
  TimerWheel wheel(0);
  NamedTimer periodic(1);
  std::vector<int64_t> due_ms;
  int64_t next_ms = 10;
  wheel.Schedule(&periodic, next_ms * kMs);
  wheel.Advance(35 * kMs, [&](Timer* timer) {
    due_ms.push_back(next_ms);
    next_ms += 10;
    wheel.Schedule(timer, next_ms * kMs);
  });
  EXPECT_THAT(due_ms, ElementsAre(10, 20, 30));
  wheel.Cancel(&periodic);
}

TEST(TimerWheel, CallbackThatAlwaysSchedulesForNowDoesNotHangAdvance) {
  TimerWheel wheel(0);
  NamedTimer timer(1);
  wheel.Schedule(&timer, 1 * kMs);
  auto again = [&](Timer* t) { wheel.Schedule(t, 5 * kMs); };
  EXPECT_LE(wheel.Advance(5 * kMs, again), 2u);
  EXPECT_EQ(wheel.Advance(5 * kMs, again), 1u);
  EXPECT_TRUE(timer.IsScheduled());
  wheel.Cancel(&timer);
}

TEST(TimerWheel, CallbackMayCancelAndDestroyOthersThatAreDue) {
  TimerWheel wheel(0);
  auto first = std::make_unique<NamedTimer>(1);
  auto second = std::make_unique<NamedTimer>(2);
  auto later = std::make_unique<NamedTimer>(3);
  wheel.Schedule(first.get(), 5 * kMs);
  wheel.Schedule(second.get(), 5 * kMs);
  wheel.Schedule(later.get(), 6 * kMs);
  std::size_t fired = wheel.Advance(10 * kMs, [&](Timer* timer) {
    // Whichever of the two is first destroys itself and both others.
    wheel.Cancel(timer == first.get() ? second.get() : first.get());
    wheel.Cancel(later.get());
    first.reset();
    second.reset();
    later.reset();
  });
  EXPECT_EQ(fired, 1u);
  EXPECT_EQ(wheel.scheduled_count(), 0u);
  EXPECT_EQ(wheel.NextDeadlineHintNs(), TimerWheel::kNever);
}

TEST(TimerWheel, OtherTickLengthsWork) {
  TimerWheel wheel(0, 1000);
  EXPECT_EQ(wheel.tick_ns(), 1000);
  NamedTimer timer(1);
  wheel.Schedule(&timer, 2'500);
  EXPECT_THAT(Fired(wheel, 2'999), IsEmpty());
  EXPECT_THAT(Fired(wheel, 3'000), ElementsAre(1));
}

TEST(TimerWheel, SizesArePinned) {
  EXPECT_EQ(sizeof(Timer), 24u);
  EXPECT_LE(sizeof(TimerWheel), 17'000u);
}

TEST(TimerWheelDeathTest, ScheduledTimerMustNotBeDestroyed) {
  EXPECT_DEATH(
      {
        TimerWheel wheel(0);
        NamedTimer timer(1);
        wheel.Schedule(&timer, kMs);
      },
      "destroyed while it is scheduled");
}

TEST(TimerWheelDeathTest, WheelMustNotBeDestroyedUnderItsTimers) {
  EXPECT_DEATH(
      {
        NamedTimer timer(1);
        TimerWheel wheel(0);
        wheel.Schedule(&timer, kMs);
      },
      "on a wheel that is destroyed");
}

// The wheel against the obvious model (a deadline per timer), over random operations and leaps.
class TimerWheelModel : public testing::TestWithParam<uint64_t> {};

TEST_P(TimerWheelModel, FiresWhatTheModelFires) {
  constexpr int kTimers = 64;
  constexpr int64_t kNotScheduled = -1;
  Random random(GetParam());
  int64_t now_ns = static_cast<int64_t>(random.Below(1'000'000'000'000));
  TimerWheel wheel(now_ns);
  std::vector<std::unique_ptr<NamedTimer>> timers;
  for (int i = 0; i < kTimers; ++i) timers.push_back(std::make_unique<NamedTimer>(i));
  std::vector<int64_t> deadline_ns(kTimers, kNotScheduled);

  for (int step = 0; step < 20'000; ++step) {
    std::size_t i = random.Below(kTimers);
    int64_t magnitude = int64_t{1} << random.Between(10, 54);
    if (random.Chance(0.5)) {
      deadline_ns[i] = now_ns + static_cast<int64_t>(random.Below(magnitude));
      wheel.Schedule(timers[i].get(), deadline_ns[i]);
    } else if (random.Chance(0.3)) {
      deadline_ns[i] = kNotScheduled;
      wheel.Cancel(timers[i].get());
    } else {
      const int64_t hint_ns = wheel.NextDeadlineHintNs();
      now_ns += static_cast<int64_t>(random.Below(int64_t{1} << random.Between(10, 44)));
      std::vector<int> fired = Fired(wheel, now_ns);
      if (now_ns < hint_ns) {
        ASSERT_THAT(fired, IsEmpty()) << "the hint was too late";
      }
      int64_t last_tick = 0;
      for (int name : fired) {
        int64_t deadline = deadline_ns[static_cast<std::size_t>(name)];
        ASSERT_NE(deadline, kNotScheduled) << "fired without being scheduled";
        ASSERT_LE(deadline, now_ns) << "fired early";
        ASSERT_GE((deadline + kMs - 1) / kMs, last_tick) << "fired out of order";
        last_tick = (deadline + kMs - 1) / kMs;
        deadline_ns[static_cast<std::size_t>(name)] = kNotScheduled;
      }
      for (std::size_t k = 0; k < kTimers; ++k) {
        if (deadline_ns[k] == kNotScheduled) continue;
        ASSERT_GT(deadline_ns[k] + kMs, now_ns) << "more than one tick late";
      }
    }
    ASSERT_EQ(timers[i]->IsScheduled(), deadline_ns[i] != kNotScheduled);
  }
  for (auto& timer : timers) wheel.Cancel(timer.get());
  EXPECT_EQ(wheel.scheduled_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimerWheelModel, testing::Values(1, 2, 3, 4, 5, 6, 7, 8));

}  // namespace
}  // namespace verbena
