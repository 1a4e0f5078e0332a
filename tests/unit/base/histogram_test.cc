// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "verbena/base/random.h"

namespace verbena {
namespace {

TEST(Histogram, IsAllZeroWhenEmpty) {
  Histogram histogram;
  EXPECT_EQ(histogram.Count(), 0u);
  EXPECT_EQ(histogram.Min(), 0u);
  EXPECT_EQ(histogram.Max(), 0u);
  EXPECT_EQ(histogram.Mean(), 0.0);
  EXPECT_EQ(histogram.Percentile(50), 0u);
}

TEST(Histogram, IsExactForSmallValues) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 100; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Count(), 100u);
  EXPECT_EQ(histogram.Min(), 1u);
  EXPECT_EQ(histogram.Max(), 100u);
  EXPECT_DOUBLE_EQ(histogram.Mean(), 50.5);
  EXPECT_EQ(histogram.Percentile(0), 1u);
  EXPECT_EQ(histogram.Percentile(1), 1u);
  EXPECT_EQ(histogram.Percentile(50), 50u);
  EXPECT_EQ(histogram.Percentile(50.1), 51u);
  EXPECT_EQ(histogram.Percentile(99), 99u);
  EXPECT_EQ(histogram.Percentile(99.9), 100u);
  EXPECT_EQ(histogram.Percentile(100), 100u);
}

TEST(Histogram, RankIsNotRoundedUpByFloatingPoint) {
  Histogram histogram;
  for (int i = 0; i < 999; ++i) histogram.Record(10);
  histogram.Record(200);
  // 99.9 % of 1000 values are 999 values, and the 999th is a 10.
  EXPECT_EQ(histogram.Percentile(99.9), 10u);
  EXPECT_EQ(histogram.Percentile(99.91), 200u);
}

TEST(Histogram, ReportsTheUpperEndOfABucket) {
  Histogram histogram;
  // 512 ... 1023 is cut into 128 buckets of 4: 1000 is in [1000, 1003].
  histogram.Record(1000);
  histogram.Record(5000);
  EXPECT_EQ(histogram.Percentile(50), 1003u);
  // 4096 ... 8191 is cut into buckets of 32: 5000 is in [4992, 5023], but 5000 is the maximum.
  EXPECT_EQ(histogram.Percentile(100), 5000u);
  histogram.Record(6000);
  EXPECT_EQ(histogram.Percentile(60), 5023u);
  EXPECT_EQ(histogram.Min(), 1000u);
  EXPECT_EQ(histogram.Max(), 6000u);
}

TEST(Histogram, TakesEvery64BitValue) {
  Histogram histogram;
  histogram.Record(0);
  histogram.Record(UINT64_MAX);
  histogram.Record(UINT64_MAX);
  EXPECT_EQ(histogram.Min(), 0u);
  EXPECT_EQ(histogram.Max(), UINT64_MAX);
  EXPECT_EQ(histogram.Percentile(10), 0u);
  EXPECT_EQ(histogram.Percentile(50), UINT64_MAX);
  // The sum needs 65 bits: 2 * (2^64 - 1) / 3.
  EXPECT_NEAR(histogram.Mean() / 12297829382473034410.0, 1.0, 1e-12);
}

TEST(Histogram, StaysWithinOnePartIn128OfTheExactPercentile) {
  Random random(20261129);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 50'000; ++i) {
    uint64_t value = random.Next() >> random.Below(64);  // All magnitudes alike.
    values.push_back(value);
    histogram.Record(value);
  }
  std::sort(values.begin(), values.end());
  for (double percent : {0.002, 1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    std::size_t rank =
        static_cast<std::size_t>(std::llround(std::ceil(percent / 100.0 * 50'000 - 1e-6)));
    uint64_t exact = values[rank - 1];
    EXPECT_GE(histogram.Percentile(percent), exact) << percent;
    EXPECT_LE(histogram.Percentile(percent) - exact, exact / 128) << percent;
  }
}

TEST(Histogram, MergeCountsAsIfRecordedInOne) {
  Random random(7);
  Histogram first, second, both;
  for (int i = 0; i < 1000; ++i) {
    uint64_t value = random.Below(1'000'000);
    (i % 3 == 0 ? first : second).Record(value);
    both.Record(value);
  }
  first.Merge(second);
  EXPECT_EQ(first.Count(), 1000u);
  EXPECT_EQ(first.Min(), both.Min());
  EXPECT_EQ(first.Max(), both.Max());
  EXPECT_DOUBLE_EQ(first.Mean(), both.Mean());
  for (double percent : {1.0, 50.0, 99.0}) {
    EXPECT_EQ(first.Percentile(percent), both.Percentile(percent));
  }
}

TEST(Histogram, MergeOfAnEmptyOneChangesNothing) {
  Histogram histogram;
  histogram.Record(5);
  histogram.Merge(Histogram());
  EXPECT_EQ(histogram.Count(), 1u);
  EXPECT_EQ(histogram.Min(), 5u);
  EXPECT_EQ(histogram.Max(), 5u);
}

TEST(Histogram, ClearForgetsEverything) {
  Histogram histogram;
  histogram.Record(5);
  histogram.Clear();
  EXPECT_EQ(histogram.Count(), 0u);
  histogram.Record(9);
  EXPECT_EQ(histogram.Percentile(100), 9u);
  EXPECT_EQ(histogram.Min(), 9u);
}

TEST(Histogram, HasAFixedSize) { EXPECT_LE(sizeof(Histogram), 59'500u); }

}  // namespace
}  // namespace verbena
