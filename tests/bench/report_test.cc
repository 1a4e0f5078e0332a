// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verbena/tools/rpc_bench/report_format.h"

namespace verbena::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Result SomeResult() {
  Result result;
  result.rtt = {0.171, 0.2, 0.3, 12};
  result.calls = 10'000'000;
  result.seconds = 2;
  result.calls_per_second = 5'000'000;
  result.bytes_per_second = 320'000'000;
  result.cpu_us = {0.2, 0.21};
  result.allocations = {0.0, 0.0};
  result.protobuf_allocations = 0;
  CeilingAround ceiling;
  ceiling.rtt_before_us = 0.12;
  ceiling.rtt_after_us = 0.13;
  ceiling.ring_messages_per_second = 50'000'000;
  ceiling.copy_bytes_per_second = 3.2e9;
  result.ceiling = ceiling;
  return result;
}

double RatioOf(Mode mode) {
  Options options;
  options.mode = mode;
  return *RatioToCeiling(options, SomeResult());
}

TEST(RatioToCeiling, DependsOnTheMode) {
  EXPECT_DOUBLE_EQ(RatioOf(Mode::kLatency), 0.171 / 0.125);
  EXPECT_DOUBLE_EQ(RatioOf(Mode::kThroughput), 0.1);
  EXPECT_DOUBLE_EQ(RatioOf(Mode::kUpload), 0.1);
  EXPECT_DOUBLE_EQ(RatioOf(Mode::kDownload), 0.1);
  EXPECT_DOUBLE_EQ(RatioOf(Mode::kBeside), 0.1);
}

TEST(RatioToCeiling, NeedsACeiling) {
  Result result = SomeResult();
  result.ceiling.reset();
  EXPECT_FALSE(RatioToCeiling(Options(), result).has_value());
}

TEST(ResultJson, WhatWasNotMeasuredIsNull) {
  Result result = SomeResult();
  result.ceiling.reset();
  result.allocations = {};
  auto json = nlohmann::json::parse(ResultJson(Options(), Conditions(), result));
  EXPECT_TRUE(json["ceiling"]["rtt_us"].is_null());
  EXPECT_TRUE(json["ceiling"]["copy_bytes_per_second"].is_null());
  EXPECT_TRUE(json["ratio_to_ceiling"].is_null());
  EXPECT_TRUE(json["allocations_per_call"]["client"].is_null());
  EXPECT_EQ(json["rtt_us"]["p50"], 0.171);
}

TEST(ResultTable, HasTheRatioOnTheLineThatItIsAbout) {
  const std::string table = ResultTable(Options(), Conditions(), SomeResult());
  EXPECT_THAT(table, HasSubstr("Echo of 64 bytes, one call at a time"));
  EXPECT_THAT(table, testing::ContainsRegex("p50 +0.171 us +0.125 us +1.37 x\n"));
  EXPECT_THAT(table, testing::ContainsRegex("calls per second +5,000,000\n"));
  EXPECT_THAT(table, Not(HasSubstr("THE MACHINE CHANGED")));
}

TEST(ResultTable, WarnsWhenTheCeilingMoved) {
  Result result = SomeResult();
  result.ceiling->rtt_after_us = 0.5;
  EXPECT_THAT(ResultTable(Options(), Conditions(), result), HasSubstr("THE MACHINE CHANGED"));
}

TEST(Format, NumbersReadWell) {
  EXPECT_EQ(FormatMicroseconds(0.1714), "0.171 us");
  EXPECT_EQ(FormatMicroseconds(12.34), "12.3 us");
  EXPECT_EQ(FormatMicroseconds(1234.5), "1234 us");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(12345678), "12,345,678");
  EXPECT_EQ(FormatBytesPerSecond(12.34e9), "12.3 GB/s");
  EXPECT_EQ(FormatBytes(64), "64 bytes");
  EXPECT_EQ(FormatBytes(4096), "4 KiB");
  EXPECT_EQ(FormatBytes(5000), "5000 bytes");
  EXPECT_EQ(FormatBytes(uint64_t{1} << 30), "1 GiB");
}

TEST(Format, ColumnsAlign) {
  EXPECT_EQ(AlignColumns({{"a", "1"}, {"long", "22"}, {"b"}}, 1),
            "  a       1\n  long   22\n  b\n");
}

}  // namespace
}  // namespace verbena::bench
