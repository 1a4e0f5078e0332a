// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace verbena {
namespace {

class BufferTest : public testing::Test {
 protected:
  Buffer WrapAll() {
    return Buffer::Wrap(memory_, [this] { ++releases_; });
  }

  std::array<std::byte, 100> memory_{};
  std::atomic<int> releases_{0};
};

TEST_F(BufferTest, IsEmptyByDefault) {
  const Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.block(), nullptr);
  const Buffer copy = buffer;  // Nothing to count.
  EXPECT_EQ(copy.block(), nullptr);
}

TEST_F(BufferTest, OfWrappedMemoryIsThatMemory) {
  const Buffer buffer = WrapAll();
  EXPECT_EQ(buffer.data(), memory_.data());
  EXPECT_EQ(buffer.size(), 100u);
  EXPECT_FALSE(buffer.empty());
  EXPECT_EQ(buffer.span().data(), memory_.data());
  EXPECT_EQ(buffer.span().size(), 100u);
  EXPECT_EQ(buffer.block()->pool, nullptr);
  EXPECT_EQ(buffer.block()->region, nullptr);
}

TEST_F(BufferTest, ReleasesWrappedMemoryOnceAndAfterTheLastSlice) {
  Buffer buffer = WrapAll();
  Buffer copy = buffer;
  Buffer slice = copy.Slice(10, 20);
  Buffer slice_of_slice = slice.Slice(5, 15);
  buffer = Buffer();
  copy = Buffer();
  slice = Buffer();
  EXPECT_EQ(releases_, 0);
  slice_of_slice = Buffer();
  EXPECT_EQ(releases_, 1);
}

TEST_F(BufferTest, KeepsWrappedMemoryForWhoeverHoldsItLonger) {
  std::shared_ptr<BlockMemory> memory;
  {
    const Buffer buffer = WrapAll();
    memory = buffer.block()->memory;
  }
  EXPECT_EQ(releases_, 0);
  memory.reset();
  EXPECT_EQ(releases_, 1);
}

TEST_F(BufferTest, NeedsNoReleaseFunction) {
  const Buffer buffer = Buffer::Wrap(memory_);
  EXPECT_EQ(buffer.size(), 100u);
}

TEST_F(BufferTest, SlicesByOffsetAndSize) {
  const Buffer buffer = WrapAll();
  const Buffer slice = buffer.Slice(10, 20);
  EXPECT_EQ(slice.data(), memory_.data() + 10);
  EXPECT_EQ(slice.size(), 20u);
  EXPECT_EQ(slice.block(), buffer.block());
  const Buffer inner = slice.Slice(19, 1);
  EXPECT_EQ(inner.data(), memory_.data() + 29);
  EXPECT_EQ(inner.size(), 1u);
  EXPECT_TRUE(buffer.Slice(100, 0).empty());
  EXPECT_EQ(buffer.Slice(0, 100).size(), 100u);
}

TEST_F(BufferTest, LeavesNothingBehindWhenMoved) {
  Buffer buffer = WrapAll();
  Buffer moved = std::move(buffer);
  EXPECT_EQ(buffer.block(), nullptr);  // NOLINT(bugprone-use-after-move): that is the contract.
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(moved.data(), memory_.data());
  EXPECT_EQ(moved.block()->references.load(), 1u);
  moved = Buffer();
  EXPECT_EQ(releases_, 1);
}

TEST_F(BufferTest, DropsWhatItHeldWhenAssignedTo) {
  std::array<std::byte, 1> other;
  Buffer buffer = WrapAll();
  Buffer& alias = buffer;
  buffer = alias;
  EXPECT_EQ(releases_, 0);
  EXPECT_EQ(buffer.block()->references.load(), 1u);
  buffer = Buffer::Wrap(other);
  EXPECT_EQ(releases_, 1);
  EXPECT_EQ(buffer.data(), other.data());
}

TEST_F(BufferTest, GivesEachWrappingAnIdOfItsOwn) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 100; ++i) ids.insert(WrapAll().block()->id);
  EXPECT_EQ(ids.size(), 100u);
  EXPECT_FALSE(ids.contains(0)) << "0 is the id of nothing";
}

TEST_F(BufferTest, IsReleasedOnceByFourThreads) {
  for (int round = 0; round < 200; ++round) {
    releases_ = 0;
    Buffer buffer = WrapAll();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([buffer, this] {
        for (int j = 0; j < 50; ++j) {
          const Buffer slice = buffer.Slice(j, 1);
          EXPECT_EQ(releases_, 0);
        }
      });
    }
    buffer = Buffer();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(releases_, 1);
  }
}

}  // namespace
}  // namespace verbena
