// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/server_context.h"

#include <gtest/gtest.h>

#include <chrono>

namespace verbena {
namespace {

int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TEST(ServerContext, HasNoDeadlineByDefaultAndIsNotCancelled) {
  ServerContext context;
  EXPECT_EQ(context.deadline(), std::chrono::steady_clock::time_point::max());
  EXPECT_FALSE(context.IsCancelled());
}

TEST(ServerContext, IsCancelledOnceItsDeadlineHasPassed) {
  ServerContext context;
  context.Reset(NowNs() + 3'600'000'000'000);
  EXPECT_FALSE(context.IsCancelled());
  EXPECT_EQ(context.deadline().time_since_epoch().count(), context.deadline_ns());
  context.Reset(NowNs() - 1);
  EXPECT_TRUE(context.IsCancelled());
}

TEST(ServerContext, ForgetsTheCallBeforeWhenItIsUsedAgain) {
  ServerContext context;
  context.Reset(ServerContext::kNoDeadline);
  context.Cancel();
  EXPECT_TRUE(context.IsCancelled());
  context.Reset(ServerContext::kNoDeadline);
  EXPECT_FALSE(context.IsCancelled());
}

}  // namespace
}  // namespace verbena
