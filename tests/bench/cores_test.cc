// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/cores.h"

#include <vector>

#include "gtest/gtest.h"

namespace verbena::bench {
namespace {

using Cores = std::vector<int>;

TEST(SplitCores, ClientOnTheFirstServerOnTheSecond) {
  absl::StatusOr<CoreSplit> split = SplitCores({2, 5, 7}, 1);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->client, Cores{2});
  EXPECT_EQ(split->server, Cores{5});
}

TEST(SplitCores, OneCorePerThreadWhereThereAreEnough) {
  absl::StatusOr<CoreSplit> split = SplitCores({0, 1, 2, 3}, 2);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->client, (Cores{0, 1}));
  EXPECT_EQ(split->server, (Cores{2, 3}));
}

TEST(SplitCores, ThreadsOfOneSideShareWhereThereAreNot) {
  absl::StatusOr<CoreSplit> split = SplitCores({0, 1, 2}, 4);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->client, Cores{0});
  EXPECT_EQ(split->server, Cores{1});
}

TEST(SplitCores, OneCoreIsNotEnough) {
  EXPECT_EQ(SplitCores({3}, 1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PinThisThread, TakesAllowedCoresOnly) {
  const Cores allowed = AllowedCores();
  EXPECT_TRUE(PinThisThread({allowed.front()}).ok());
  EXPECT_EQ(AllowedCores(), Cores{allowed.front()});
  EXPECT_TRUE(PinThisThread(allowed).ok());
  EXPECT_EQ(PinThisThread({1 << 20}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace verbena::bench
