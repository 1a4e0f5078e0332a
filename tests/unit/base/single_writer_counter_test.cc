// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/single_writer_counter.h"

#include <gtest/gtest.h>

#include <thread>

namespace verbena {
namespace {

TEST(SingleWriterCounter, AddsSubtractsAndSets) {
  SingleWriterCounter counter;
  EXPECT_EQ(counter.value(), 0u);
  counter.Add(5);
  counter.Add(37);
  EXPECT_EQ(counter.value(), 42u);
  counter.Subtract(2);
  EXPECT_EQ(counter.value(), 40u);
  counter.Set(7);
  EXPECT_EQ(counter.value(), 7u);
}

TEST(SingleWriterCounter, ReaderNeverSeesItGoBack) {
  constexpr uint64_t kCount = 200'000;
  SingleWriterCounter counter;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kCount; ++i) counter.Add(1);
  });
  uint64_t last = 0;
  while (last < kCount) {
    const uint64_t now = counter.value();
    ASSERT_GE(now, last);
    last = now;
    std::this_thread::yield();
  }
  writer.join();
  EXPECT_EQ(counter.value(), kCount);
}

}  // namespace
}  // namespace verbena
