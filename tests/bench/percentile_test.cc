// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/percentile.h"

#include <memory>

#include "gtest/gtest.h"
#include "verbena/base/histogram.h"

namespace verbena::bench {
namespace {

TEST(PercentileUs, NothingRecordedIsZero) {
  auto histogram = std::make_unique<Histogram>();
  EXPECT_EQ(PercentileUs(*histogram, 50), 0);
}

TEST(PercentileUs, OneValueIsItself) {
  auto histogram = std::make_unique<Histogram>();
  for (int i = 0; i < 10; ++i) histogram->Record(150);
  EXPECT_EQ(PercentileUs(*histogram, 50), 0.150);
  EXPECT_EQ(PercentileUs(*histogram, 99), 0.150);
}

TEST(PercentileUs, FindsWhatACoarseCounterHides) {
  // 113 ns, read with a counter of 10 ns steps.
  auto histogram = std::make_unique<Histogram>();
  for (int i = 0; i < 1000; ++i) histogram->Record(i % 10 < 7 ? 110 : 120);
  EXPECT_NEAR(PercentileUs(*histogram, 50), 0.113, 0.002);
}

TEST(PercentileUs, TheMiddleOfAFlatDistribution) {
  auto histogram = std::make_unique<Histogram>();
  for (int i = 0; i < 1000; ++i) histogram->Record(100 + 10 * (i % 5));  // 100 to 140.
  EXPECT_NEAR(PercentileUs(*histogram, 50), 0.120, 0.0005);
  EXPECT_NEAR(PercentileUs(*histogram, 30), 0.110, 0.0005);
}

TEST(PercentileUs, DoesNotInterpolateIntoTheTail) {
  auto histogram = std::make_unique<Histogram>();
  for (int i = 0; i < 1000; ++i) histogram->Record(100);
  histogram->Record(5000);
  EXPECT_EQ(PercentileUs(*histogram, 50), 0.100);
  EXPECT_EQ(PercentileUs(*histogram, 100), 5.0);
}

}  // namespace
}  // namespace verbena::bench
