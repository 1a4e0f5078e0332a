// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace verbena {
namespace {

// From the reference implementation, prng.di.unimi.it/splitmix64.c.
TEST(SplitMix64, MatchesTheReference) {
  uint64_t state = 0;
  EXPECT_EQ(SplitMix64(&state), 0xe220a8397b1dcdafu);
  EXPECT_EQ(SplitMix64(&state), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(SplitMix64(&state), 0x06c45d188009454fu);
  EXPECT_EQ(SplitMix64(&state), 0xf88bb8a8724c81ecu);
  state = 1234567;
  EXPECT_EQ(SplitMix64(&state), 6457827717110365317u);
  EXPECT_EQ(SplitMix64(&state), 3203168211198807973u);
}

// From the reference implementation, prng.di.unimi.it/xoshiro256starstar.c, with s = {1, 2, 3, 4}.
TEST(Random, MatchesTheReference) {
  Random random = Random::FromState({1, 2, 3, 4});
  constexpr uint64_t kExpected[] = {11520u,
                                    0u,
                                    1509978240u,
                                    1215971899390074240u,
                                    1216172134540287360u,
                                    607988272756665600u,
                                    16172922978634559625u,
                                    8476171486693032832u,
                                    10595114339597558777u,
                                    2904607092377533576u};
  for (uint64_t expected : kExpected) {
    EXPECT_EQ(random.Next(), expected);
  }
}

TEST(Random, SeedFillsTheStateThroughSplitMix64) {
  EXPECT_THAT(Random(0).state(), testing::ElementsAre(0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u,
                                                      0x06c45d188009454fu, 0xf88bb8a8724c81ecu));
}

TEST(Random, SameSeedSameNumbersAndOtherSeedOthers) {
  Random first(99), second(99), other(100);
  int equal_to_other = 0;
  for (int i = 0; i < 100; ++i) {
    uint64_t value = first.Next();
    EXPECT_EQ(value, second.Next());
    equal_to_other += value == other.Next() ? 1 : 0;
  }
  EXPECT_EQ(equal_to_other, 0);
}

TEST(Random, ContinuesFromASavedState) {
  Random random(5);
  random.Next();
  Random copy = Random::FromState(random.state());
  EXPECT_EQ(copy.Next(), random.Next());
}

TEST(Random, BelowReachesEveryValueAboutEquallyOften) {
  Random random(1);
  std::array<int, 7> counts = {};
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.Below(7));
  // 10,000 each, with a standard deviation of sqrt(70000 * 1/7 * 6/7) = 93; six of them.
  for (int count : counts) EXPECT_NEAR(count, 10'000, 560);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(Random, BelowIsNotBiasedForHugeBounds) {
  Random random(2);
  // Four 64-bit draws for three results: without rejection, every third result would come twice as
  // often as the others.
  constexpr uint64_t kBound = uint64_t{3} << 62;
  std::array<int, 3> counts = {};
  for (int i = 0; i < 30'000; ++i) {
    uint64_t value = random.Below(kBound);
    ASSERT_LT(value, kBound);
    ++counts.at(value % 3);
  }
  // Standard deviation sqrt(30000 * 1/3 * 2/3) = 82; six of them.
  for (int count : counts) EXPECT_NEAR(count, 10'000, 490);
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(3);
  uint64_t lowest = UINT64_MAX, highest = 0;
  for (int i = 0; i < 1000; ++i) {
    uint64_t value = random.Between(10, 13);
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  EXPECT_EQ(lowest, 10u);
  EXPECT_EQ(highest, 13u);
}

TEST(Random, UnitIsInTheHalfOpenIntervalWithMeanOneHalf) {
  Random random(4);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    double value = random.Unit();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  // The standard deviation of the mean is sqrt(1/12 / 100000) = 0.0009.
  EXPECT_NEAR(sum / 100'000, 0.5, 0.006);
}

TEST(Random, ChanceIsCertainAtZeroAndOne) {
  Random random(5);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(random.Chance(0.0));
    EXPECT_TRUE(random.Chance(1.0));
    hits += random.Chance(0.25) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 2500, 6 * 43.4);  // Standard deviation sqrt(10000 * 1/4 * 3/4).
}

TEST(Random, SplitGivesAnIndependentRepeatableGenerator) {
  Random first(6), second(6);
  Random part = first.Split();
  Random same_part = second.Split();
  for (int i = 0; i < 100; ++i) part.Next();  // What the part draws ...
  EXPECT_EQ(first.Next(), second.Next());     // ... the parent does not notice.
  same_part.Next();
  EXPECT_NE(same_part.Next(), second.Next());
}

TEST(Random, ServesAsAStandardGenerator) {
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  Random random(8);
  std::shuffle(values.begin(), values.end(), random);
  EXPECT_THAT(values, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

}  // namespace
}  // namespace verbena
