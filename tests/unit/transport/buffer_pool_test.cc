// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/buffer_pool.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "verbena/tests/support/status_matchers.h"

namespace verbena {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

// How many of these pages exist in memory, or -1 when not all of them are mapped.
int ResidentPages(const std::byte* data, size_t bytes) {
  const size_t page_bytes = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages((bytes + page_bytes - 1) / page_bytes);
  if (mincore(const_cast<std::byte*>(data), bytes, pages.data()) != 0) {
    EXPECT_EQ(errno, ENOMEM);
    return -1;
  }
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}

bool IsMapped(const std::byte* data) { return ResidentPages(data, 1) >= 0; }

TEST(BufferPool, AllocatesExactlyWhatWasAskedFor) {
  BufferPool pool;
  for (size_t bytes : {size_t{0}, size_t{1}, 16 * kKiB - 1, 16 * kKiB, 16 * kKiB + 1,
                       size_t{1'000'000}, 2 * kMiB, 2 * kMiB + 1, 5 * kMiB, 16 * kMiB}) {
    const absl::StatusOr<Buffer> buffer = pool.Allocate(bytes);
    ASSERT_THAT(buffer, IsOk()) << bytes;
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 4096, 0u) << bytes;
    if (bytes > 0) std::memset(buffer->data(), 0x5a, bytes);
  }
}

TEST(BufferPool, StartsHugePagesWhereTheyCanStart) {
  BufferPool pool;
  const absl::StatusOr<Buffer> buffer = pool.Allocate(2 * kMiB + 1);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (2 * kMiB), 0u);
}

TEST(BufferPool, UsesMemoryAgain) {
  BufferPool pool;
  uint64_t id = 0;
  {
    const absl::StatusOr<Buffer> buffer = pool.Allocate(100'000);
    ASSERT_THAT(buffer, IsOk());
    id = buffer->block()->id;
  }
  const absl::StatusOr<Buffer> again = pool.Allocate(90'000);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->block()->id, id);
  EXPECT_EQ(again->size(), 90'000u);
}

TEST(BufferPool, TouchesPagesOnlyWhenToldTo) {
  for (size_t bytes : {512 * kKiB, 4 * kMiB}) {
    BufferPool lazy;
    const absl::StatusOr<Buffer> untouched = lazy.Allocate(bytes);
    ASSERT_THAT(untouched, IsOk());
    EXPECT_EQ(ResidentPages(untouched->data(), bytes), 0);

    BufferPool eager({.prefault = true});
    const absl::StatusOr<Buffer> touched = eager.Allocate(bytes);
    ASSERT_THAT(touched, IsOk());
    EXPECT_EQ(ResidentPages(touched->data(), bytes),
              static_cast<int>(bytes / sysconf(_SC_PAGESIZE)));
  }
}

// A block of 64 KiB and one of 32 KiB fit, and another one of 32 KiB would need the first to go.
TEST(BufferPool, NamesItsOwnLimitWhenThatIsReached) {
  BufferPool pool({.bytes_max = 100 * kKiB});
  const absl::StatusOr<Buffer> first = pool.Allocate(64 * kKiB);
  const absl::StatusOr<Buffer> second = pool.Allocate(32 * kKiB);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(pool.bytes(), 96 * kKiB);
  EXPECT_THAT(pool.Allocate(32 * kKiB),
              Is(absl::StatusCode::kResourceExhausted,
                 "the memory budget of the BufferPool is exhausted: 98304 of 102400 bytes are in "
                 "use and 32768 more are needed: raise BufferPoolOptions::bytes_max"));
}

TEST(BufferPool, SharesABudgetWithOthers) {
  auto budget = std::make_shared<MemoryBudget>("the budget of two", 100 * kKiB);
  BufferPool first({.budget = budget});
  BufferPool second({.budget = budget, .bytes_max = 50 * kKiB});
  absl::StatusOr<Buffer> buffer = first.Allocate(96 * kKiB);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_THAT(second.Allocate(16 * kKiB),
              Is(absl::StatusCode::kResourceExhausted, "the budget of two is exhausted"));
  EXPECT_THAT(second.Allocate(64 * kKiB), Is(absl::StatusCode::kResourceExhausted,
                                             "the memory budget of the BufferPool is exhausted"));
  *buffer = Buffer();
  first.Trim();
  EXPECT_THAT(second.Allocate(16 * kKiB), IsOk());
  EXPECT_EQ(budget->bytes_in_use(), 16 * kKiB) << "of the second, and nothing for what failed";
}

TEST(BufferPool, ChargesTheProcessByDefault) {
  const uint64_t before = MemoryBudget::OfProcess()->bytes_in_use();
  {
    BufferPool pool({.bytes_max = kMiB});
    ASSERT_THAT(pool.Allocate(64 * kKiB), IsOk());
    EXPECT_EQ(MemoryBudget::OfProcess()->bytes_in_use(), before + 64 * kKiB);
  }
  EXPECT_EQ(MemoryBudget::OfProcess()->bytes_in_use(), before);
}

TEST(BufferPool, RefusesWhatNoBlockIsLargeEnoughFor) {
  BufferPool pool({.budget = std::make_shared<MemoryBudget>("endless", ~uint64_t{0})});
  for (size_t bytes : {(size_t{1} << 40) + 1, std::numeric_limits<size_t>::max()}) {
    EXPECT_THAT(pool.Allocate(bytes), Is(absl::StatusCode::kResourceExhausted,
                                         "one has at most 1099511627776: divide it"));
  }
}

TEST(BufferPool, UnmapsWhatIsUnusedWhenTrimmed) {
  BufferPool pool;
  const std::byte* data = nullptr;
  {
    const absl::StatusOr<Buffer> buffer = pool.Allocate(3 * kMiB);
    ASSERT_THAT(buffer, IsOk());
    data = buffer->data();
    pool.Trim();
    EXPECT_TRUE(IsMapped(data)) << "it is in use";
  }
  EXPECT_TRUE(IsMapped(data));
  pool.Trim();
  EXPECT_FALSE(IsMapped(data));
  EXPECT_EQ(pool.bytes(), 0u);
}

TEST(BufferPool, LeavesBuffersThatOutliveItAlone) {
  auto budget = std::make_shared<MemoryBudget>("a budget", kMiB);
  std::optional<BufferPool> pool(BufferPoolOptions{.budget = budget});
  absl::StatusOr<Buffer> kept = pool->Allocate(20 * kKiB);
  ASSERT_THAT(kept, IsOk());
  ASSERT_THAT(pool->Allocate(64 * kKiB), IsOk());
  EXPECT_EQ(budget->bytes_in_use(), 84 * kKiB);
  pool.reset();
  EXPECT_EQ(budget->bytes_in_use(), 20 * kKiB) << "what was unused is gone";
  std::memset(kept->data(), 0x5a, kept->size());
  const std::byte* const data = kept->data();
  *kept = Buffer();
  EXPECT_FALSE(IsMapped(data));
  EXPECT_EQ(budget->bytes_in_use(), 0u);
}

TEST(BufferPool, KeepsMemoryMappedForWhoeverHoldsItLonger) {
  BufferPool pool;
  std::shared_ptr<BlockMemory> memory;
  std::byte* data = nullptr;
  {
    const absl::StatusOr<Buffer> buffer = pool.Allocate(64 * kKiB);
    ASSERT_THAT(buffer, IsOk());
    memory = buffer->block()->memory;
    data = buffer->data();
  }
  pool.Trim();
  EXPECT_EQ(pool.bytes(), 0u) << "the block is gone";
  EXPECT_TRUE(IsMapped(data));
  std::memset(data, 0x5a, 64 * kKiB);
  memory.reset();
  EXPECT_FALSE(IsMapped(data));
}

}  // namespace
}  // namespace verbena
