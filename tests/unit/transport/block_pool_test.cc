// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/block_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "verbena/base/cpu_relax.h"
#include "verbena/base/random.h"
#include "verbena/tests/support/status_matchers.h"

namespace verbena {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

// What a source under test has done; outlives source and pool.
struct Log {
  std::atomic<int> made{0};
  std::atomic<int> live{0};
  std::atomic<bool> fails{false};
  std::atomic<bool> source_is_gone{false};
};

class HeapMemory : public BlockMemory {
 public:
  HeapMemory(Log* log, size_t bytes)
      : bytes_(new std::byte[bytes]), log_(log) {  // Not initialised, so hardly any memory.
    ++log_->live;
  }
  ~HeapMemory() override { --log_->live; }
  std::byte* data() const { return bytes_.get(); }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
  Log* const log_;
};

class HeapSource : public BlockSource {
 public:
  explicit HeapSource(Log* log) : log_(log) {}
  ~HeapSource() override { log_->source_is_gone = true; }
  absl::StatusOr<Made> Make(size_t bytes) override {
    if (log_->fails) return absl::UnavailableError("the source is dry");
    ++log_->made;
    bytes += 8;  // As a source that rounds up.
    auto memory = std::make_shared<HeapMemory>(log_, bytes);
    return Made{.bytes = {memory->data(), bytes},
                .memory = memory,
                .domain_id = 7,
                .region = reinterpret_cast<MemoryRegion*>(0x1000)};
  }

 private:
  Log* const log_;
};

class BlockPoolTest : public testing::Test {
 protected:
  std::shared_ptr<BlockPool> MakePool(std::vector<std::shared_ptr<MemoryBudget>> budgets = {}) {
    return BlockPool::Create(std::make_unique<HeapSource>(&log_), std::move(budgets));
  }
  static std::shared_ptr<MemoryBudget> Budget(uint64_t bytes_max, std::string name = "a budget") {
    return std::make_shared<MemoryBudget>(std::move(name), bytes_max);
  }

  Log log_;
};

// Expected sizes by hand: 16 KiB, then steps of 2 KiB to 32 KiB, then of 4 KiB.
TEST(SizeClass, AreEightToADoubling) {
  const size_t expected_kib[] = {16, 18, 20, 22, 24, 26, 28, 30, 32,
                                 36, 40, 44, 48, 52, 56, 60, 64};
  uint32_t size_class = 0;
  for (size_t kib : expected_kib) EXPECT_EQ(SizeOfClass(size_class++), kib * kKiB);
  EXPECT_EQ(SizeOfClass(kSizeClassCount - 1), size_t{1} << 40);
  EXPECT_EQ(ClassOfSize(size_t{1} << 40), kSizeClassCount - 1);
  EXPECT_EQ(ClassOfSize(0), 0u);
}

void CheckSize(size_t bytes) {
  const uint32_t size_class = ClassOfSize(bytes);
  const size_t block = SizeOfClass(size_class);
  ASSERT_GE(block, bytes);
  if (size_class > 0) {
    ASSERT_LT(SizeOfClass(size_class - 1), bytes) << "a smaller class would do";
  }
  if (bytes > 16 * kKiB) {
    ASSERT_LE(block - bytes, bytes / 8);
  }
}

TEST(SizeClass, WastesAtMostAnEighthUpTo1MiB) {
  for (size_t bytes = 1; bytes <= kMiB; bytes += bytes < 70'000 ? 1 : 7) {
    CheckSize(bytes);
    ASSERT_LE(ClassOfSize(bytes), ClassOfSize(bytes + 1)) << bytes;
  }
}

TEST(SizeClass, FitsItsOwnSizeAndTheNextFitsAByteMore) {
  for (uint32_t size_class = 0; size_class + 1 < kSizeClassCount; ++size_class) {
    const size_t bytes = SizeOfClass(size_class);
    EXPECT_LT(bytes, SizeOfClass(size_class + 1));
    EXPECT_EQ(ClassOfSize(bytes), size_class);
    EXPECT_EQ(ClassOfSize(bytes + 1), size_class + 1);
    CheckSize(bytes);
    CheckSize(bytes + 1);
  }
}

TEST_F(BlockPoolTest, HasNothingUnusedAtFirst) {
  const auto pool = MakePool();
  for (uint32_t size_class : {0u, 100u, kSizeClassCount - 1}) {
    EXPECT_EQ(pool->TakeUnused(size_class).block(), nullptr);
  }
  EXPECT_EQ(log_.made, 0);
  EXPECT_EQ(pool->block_count(), 0u);
}

TEST_F(BlockPoolTest, MakesABlockOfItsClassWithWhatTheSourceSays) {
  const auto pool = MakePool();
  const absl::StatusOr<Buffer> buffer = pool->Make(3);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_EQ(buffer->size(), 22 * kKiB);
  EXPECT_EQ(buffer->block()->bytes.size(), 22 * kKiB) << "not what the source rounded it up to";
  EXPECT_EQ(buffer->block()->size_class, 3u);
  EXPECT_EQ(buffer->block()->domain_id, 7u);
  EXPECT_EQ(buffer->block()->region, reinterpret_cast<MemoryRegion*>(0x1000));
  EXPECT_EQ(buffer->block()->pool, pool);
  EXPECT_EQ(pool->bytes(), 22 * kKiB);
  EXPECT_EQ(pool->block_count(), 1u);
}

TEST_F(BlockPoolTest, TakesABlockAgainOnceItsLastSliceIsGone) {
  const auto pool = MakePool();
  absl::StatusOr<Buffer> buffer = pool->Take(20'000);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_EQ(buffer->size(), 20'000u);
  const uint64_t id = buffer->block()->id;
  Buffer slice = buffer->Slice(100, 10);
  *buffer = Buffer();
  EXPECT_EQ(pool->TakeUnused(2).block(), nullptr) << "a slice is left";
  slice = Buffer();
  const absl::StatusOr<Buffer> again = pool->Take(20'480);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->block()->id, id);
  EXPECT_EQ(again->size(), 20'480u);
  EXPECT_EQ(again->data(), again->block()->bytes.data());
  EXPECT_EQ(log_.made, 1);
}

TEST_F(BlockPoolTest, KeepsNoBlockOfItsOwnAlive) {
  auto pool = MakePool();
  ASSERT_THAT(pool->Take(1), IsOk());
  EXPECT_EQ(pool.use_count(), 1) << "an unused block keeps the pool";
  pool.reset();
  EXPECT_TRUE(log_.source_is_gone);
  EXPECT_EQ(log_.live, 0);
}

TEST_F(BlockPoolTest, TakesTheLastOneThatCameBackFirst) {
  const auto pool = MakePool();
  Buffer first = *pool->Make(0);
  Buffer second = *pool->Make(0);
  const uint64_t first_id = first.block()->id;
  const uint64_t second_id = second.block()->id;
  EXPECT_NE(first_id, second_id);
  second = Buffer();
  first = Buffer();
  first = pool->TakeUnused(0);
  second = pool->TakeUnused(0);
  ASSERT_NE(second.block(), nullptr);
  EXPECT_EQ(first.block()->id, first_id);
  EXPECT_EQ(second.block()->id, second_id);
  EXPECT_EQ(pool->TakeUnused(0).block(), nullptr);
}

TEST_F(BlockPoolTest, TakesUpToSevenClassesAbove) {
  const auto pool = MakePool();
  ASSERT_THAT(pool->Make(20), IsOk());
  EXPECT_EQ(pool->TakeUnused(12).block(), nullptr);
  EXPECT_EQ(pool->TakeUnused(21).block(), nullptr);
  for (uint32_t size_class = 13; size_class <= 20; ++size_class) {
    EXPECT_EQ(pool->TakeUnused(size_class).size(), SizeOfClass(20)) << size_class;
  }
}

TEST_F(BlockPoolTest, PrefersTheSmallestThatFits) {
  const auto pool = MakePool();
  {
    const Buffer large = *pool->Make(5);
    const Buffer small = *pool->Make(2);
  }
  EXPECT_EQ(pool->TakeUnused(1).size(), SizeOfClass(2));
}

TEST_F(BlockPoolTest, ChargesAllBudgetsTheWholeBlock) {
  const auto connection = Budget(kMiB);
  const auto process = Budget(kMiB);
  const auto pool = MakePool({connection, process});
  {
    const absl::StatusOr<Buffer> buffer = pool->Take(16 * kKiB + 1);
    ASSERT_THAT(buffer, IsOk());
    EXPECT_EQ(connection->bytes_in_use(), 18 * kKiB);
    EXPECT_EQ(process->bytes_in_use(), 18 * kKiB);
  }
  EXPECT_EQ(process->bytes_in_use(), 18 * kKiB) << "unused memory is memory";
  pool->Trim();
  EXPECT_EQ(connection->bytes_in_use(), 0u);
  EXPECT_EQ(process->bytes_in_use(), 0u);
  EXPECT_EQ(pool->bytes(), 0u);
  EXPECT_EQ(pool->block_count(), 0u);
  EXPECT_EQ(log_.live, 0);
}

TEST_F(BlockPoolTest, TakesTheChargeBackWhenALaterBudgetRefuses) {
  const auto first = Budget(kMiB);
  const auto second = Budget(kMiB);
  const auto third = Budget(40 * kKiB, "the third budget");
  const auto pool = MakePool({first, second, third});
  const absl::StatusOr<Buffer> held = pool->Make(0);
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(pool->Make(ClassOfSize(32 * kKiB)),
              Is(absl::StatusCode::kResourceExhausted,
                 "the third budget is exhausted: 16384 of 40960 bytes are in use and 32768 more"));
  EXPECT_EQ(first->bytes_in_use(), 16 * kKiB);
  EXPECT_EQ(second->bytes_in_use(), 16 * kKiB);
  EXPECT_EQ(third->bytes_in_use(), 16 * kKiB);
  EXPECT_EQ(log_.made, 1);
}

TEST_F(BlockPoolTest, TakesTheChargeBackWhenTheSourceFails) {
  const auto budget = Budget(kMiB);
  const auto pool = MakePool({budget});
  log_.fails = true;
  EXPECT_THAT(pool->Take(1), Is(absl::StatusCode::kUnavailable, "the source is dry"));
  EXPECT_EQ(budget->bytes_in_use(), 0u);
  EXPECT_EQ(pool->bytes(), 0u);
  EXPECT_EQ(pool->block_count(), 0u);
  log_.fails = false;
  EXPECT_THAT(pool->Take(1), IsOk());
}

TEST_F(BlockPoolTest, MakesRoomFromItsUnusedBlocksOfAllClasses) {
  const auto budget = Budget(100 * kKiB);
  const auto pool = MakePool({budget});
  {
    const Buffer small = *pool->Make(0);
    const Buffer large = *pool->Make(ClassOfSize(64 * kKiB));
  }
  EXPECT_EQ(budget->bytes_in_use(), 80 * kKiB);
  // 96 KiB need both to go.
  const absl::StatusOr<Buffer> buffer = pool->Take(96 * kKiB);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_EQ(budget->bytes_in_use(), 96 * kKiB);
  EXPECT_EQ(log_.live, 1);
}

TEST_F(BlockPoolTest, KeepsItsUnusedBlocksWhenTheyWouldNotMakeRoomEnough) {
  const auto pool = MakePool({Budget(100 * kKiB)});
  ASSERT_THAT(pool->Make(0), IsOk());
  EXPECT_THAT(pool->Take(101 * kKiB),
              Is(absl::StatusCode::kResourceExhausted, "or ask for less at once"));
  EXPECT_EQ(log_.live, 1);
}

TEST_F(BlockPoolTest, SaysWhetherThereIsRoomAndWhetherThereCouldEverBe) {
  const auto small = Budget(64 * kKiB, "the small budget");
  const auto large = Budget(kMiB, "the large budget");
  const auto pool = MakePool({large, small});
  const uint32_t class_64_kib = ClassOfSize(64 * kKiB);
  bool ever = false;
  EXPECT_THAT(pool->CheckRoom(class_64_kib, &ever), IsOk());
  EXPECT_TRUE(ever);
  EXPECT_EQ(small->bytes_in_use(), 0u) << "a question charges nothing";

  EXPECT_THAT(pool->CheckRoom(class_64_kib + 1, &ever),
              Is(absl::StatusCode::kResourceExhausted, "the small budget is exhausted"));
  EXPECT_FALSE(ever);

  const absl::StatusOr<Buffer> held = pool->Make(0);
  ever = false;
  EXPECT_THAT(pool->CheckRoom(class_64_kib, &ever),
              Is(absl::StatusCode::kResourceExhausted, "the small budget is exhausted: 16384 of"));
  EXPECT_TRUE(ever);
  EXPECT_THAT(pool->CheckRoom(ClassOfSize(48 * kKiB), &ever), IsOk());

  // Never is said though another budget only has no room at present.
  ASSERT_TRUE(large->TryCharge(kMiB - 16 * kKiB));
  ever = true;
  EXPECT_THAT(pool->CheckRoom(class_64_kib + 1, &ever),
              Is(absl::StatusCode::kResourceExhausted, "the small budget is exhausted"));
  EXPECT_FALSE(ever);
}

TEST_F(BlockPoolTest, TrimsOneClassAndNotItsNeighbours) {
  const auto pool = MakePool();
  {
    const Buffer a = *pool->Make(1);
    const Buffer b = *pool->Make(2);
    const Buffer c = *pool->Make(2);
    const Buffer d = *pool->Make(3);
  }
  const Buffer used = pool->TakeUnused(2);
  ASSERT_EQ(used.size(), SizeOfClass(2));
  pool->TrimClass(2);
  EXPECT_EQ(log_.live, 3);
  EXPECT_EQ(pool->TakeUnused(1).size(), SizeOfClass(1));
  EXPECT_EQ(pool->TakeUnused(2).size(), SizeOfClass(3));
}

TEST_F(BlockPoolTest, GivesNewMemoryAnIdThatNoneHadBefore) {
  const auto pool = MakePool();
  std::set<uint64_t> ids;
  for (int i = 0; i < 100; ++i) {
    ids.insert(pool->Make(0)->block()->id);
    pool->Trim();
  }
  EXPECT_EQ(ids.size(), 100u);
}

TEST_F(BlockPoolTest, HasAtMostKBlocksMaxBlocks) {
  const auto budget = Budget(1024 * kMiB);
  const auto pool = MakePool({budget});
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < BlockPool::kBlocksMax; ++i) {
    absl::StatusOr<Buffer> buffer = pool->Make(0);
    ASSERT_THAT(buffer, IsOk()) << i;
    buffers.push_back(*std::move(buffer));
  }
  bool ever = false;
  EXPECT_THAT(pool->CheckRoom(0, &ever),
              Is(absl::StatusCode::kResourceExhausted, "at most 4096 blocks"));
  EXPECT_TRUE(ever);
  EXPECT_THAT(pool->Make(0), Is(absl::StatusCode::kResourceExhausted, "at most 4096 blocks"));
  EXPECT_EQ(budget->bytes_in_use(), 4096 * 16 * kKiB);
  buffers.resize(4095);
  EXPECT_THAT(pool->Make(1), IsOk()) << "the unused one makes room";
  EXPECT_EQ(pool->block_count(), 4096u);
  std::set<BufferBlock*> blocks;
  for (const Buffer& buffer : buffers) blocks.insert(buffer.block());
  EXPECT_EQ(blocks.size(), 4095u);
}

TEST_F(BlockPoolTest, DestroysUnusedBlocksWhenClosedAndOthersWhenTheyComeBack) {
  const auto budget = Budget(kMiB);
  const auto pool = MakePool({budget});
  Buffer used = *pool->Make(1);
  ASSERT_THAT(pool->Make(0), IsOk());
  EXPECT_EQ(log_.live, 2);
  pool->Close();
  EXPECT_EQ(log_.live, 1);
  EXPECT_EQ(budget->bytes_in_use(), 18 * kKiB);
  used.data()[0] = std::byte{1};
  used = Buffer();
  EXPECT_EQ(log_.live, 0);
  EXPECT_EQ(budget->bytes_in_use(), 0u);
  EXPECT_EQ(pool->block_count(), 0u);

  EXPECT_EQ(pool->TakeUnused(0).block(), nullptr);
  EXPECT_THAT(pool->Make(0), Is(absl::StatusCode::kFailedPrecondition, "closed"));
  EXPECT_THAT(pool->Take(1), Is(absl::StatusCode::kFailedPrecondition, "closed"));
  bool ever = true;
  EXPECT_THAT(pool->CheckRoom(0, &ever), Is(absl::StatusCode::kFailedPrecondition, "closed"));
  EXPECT_FALSE(ever);
  EXPECT_EQ(log_.made, 2);
}

TEST_F(BlockPoolTest, LivesAsLongAsABufferOfIt) {
  const auto budget = Budget(kMiB);
  auto pool = MakePool({budget});
  Buffer first = *pool->Make(0);
  Buffer second = *pool->Make(0);
  pool.reset();
  EXPECT_FALSE(log_.source_is_gone);
  first = Buffer();
  EXPECT_FALSE(log_.source_is_gone);
  second.data()[100] = std::byte{1};
  second = Buffer();
  EXPECT_TRUE(log_.source_is_gone);
  EXPECT_EQ(log_.live, 0);
  EXPECT_EQ(budget->bytes_in_use(), 0u);
}

TEST_F(BlockPoolTest, LeavesMemoryToWhoeverHoldsItLonger) {
  const auto budget = Budget(kMiB);
  const auto pool = MakePool({budget});
  std::shared_ptr<BlockMemory> memory = pool->Make(0)->block()->memory;
  pool->Trim();
  EXPECT_EQ(budget->bytes_in_use(), 0u);
  EXPECT_EQ(log_.live, 1);
  memory.reset();
  EXPECT_EQ(log_.live, 0);
}

// Threads
// ------------------------------------------------------------------------------------------

// Writes its token all over a block, lets others run, and looks whether it is still there: two
// users of one block would see each other's (and be a data race for ThreadSanitizer).
void UseAlone(const Buffer& buffer, uint64_t token, bool yield) {
  const size_t words = buffer.block()->bytes.size() / sizeof(token);
  auto* const memory = reinterpret_cast<uint64_t*>(buffer.data());
  for (size_t at = 0; at < words; at += 256) memory[at] = token;
  if (yield) std::this_thread::yield();
  for (size_t at = 0; at < words; at += 256) {
    ASSERT_EQ(memory[at], token) << "another thread has this block, too";
  }
}

// Few blocks of few classes, so that threads meet at the same heads all the time.
TEST_F(BlockPoolTest, GivesABlockToOneOfFourThreadsAtATime) {
  const auto budget = Budget(10 * 32 * kKiB);
  const auto pool = MakePool({budget});
  std::atomic<int> first_count{0};
  std::atomic<int> second_count{0};
  std::latch start(4);
  std::vector<std::thread> threads;
  for (uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      Random random(number);
      start.arrive_and_wait();
      for (uint64_t i = 0; i < 100'000; ++i) {
        const uint32_t size_class = random.Next() % 3;
        absl::StatusOr<Buffer> first = pool->Take(SizeOfClass(size_class));
        const Buffer second = pool->TakeUnused(size_class);
        const bool yield = i % 8 == 0;
        if (first.ok()) UseAlone(*first, number << 32 | i, yield);
        if (second.block() != nullptr) UseAlone(second, ~(number << 32 | i), yield);
        if (HasFatalFailure()) return;
        if (first.ok()) ++first_count;
        if (second.block() != nullptr) ++second_count;
        if (i % 1000 == number) pool->Trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(first_count, 0);
  EXPECT_GT(second_count, 0) << "no block of one thread was ever used by another";
  EXPECT_GT(log_.made, 4) << "nothing was made and destroyed meanwhile";
  // All blocks are back, each once.
  std::vector<Buffer> all;
  for (Buffer buffer = pool->TakeUnused(0); buffer.block() != nullptr;
       buffer = pool->TakeUnused(0)) {
    all.push_back(buffer);
  }
  EXPECT_EQ(all.size(), pool->block_count());
  EXPECT_EQ(static_cast<int>(all.size()), log_.live);
  all.clear();
  pool->Trim();
  EXPECT_EQ(budget->bytes_in_use(), 0u);
  EXPECT_EQ(log_.live, 0);
}

// Give-backs that race with Close() are destroyed by the one or the other.
TEST_F(BlockPoolTest, IsEmptyAfterACloseThatRacesWithGivingBack) {
  const auto budget = Budget(kMiB);
  for (int round = 0; round < 500; ++round) {
    const auto pool = MakePool({budget});
    std::vector<Buffer> buffers;
    for (int i = 0; i < 32; ++i) buffers.push_back(*pool->Make(0));
    std::atomic<int> ready{0};
    const auto meet = [&ready] {
      ++ready;
      // Without sleeping, so that both go on at once, but not for long where cores are busy.
      for (int i = 0; ready < 2; ++i) i < 5000 ? CpuRelax() : std::this_thread::yield();
    };
    std::thread other([&] {
      meet();
      for (Buffer& buffer : buffers) buffer = Buffer();
    });
    meet();
    for (int i = 0; i < round % 32; ++i) CpuRelax();  // Early and late.
    pool->Close();
    other.join();
    ASSERT_EQ(pool->block_count(), 0u) << round;
    ASSERT_EQ(log_.live, 0) << round;
    ASSERT_EQ(budget->bytes_in_use(), 0u) << round;
  }
}

// The last Buffers of a pool that nobody else holds, dropped at once.
TEST_F(BlockPoolTest, GoesOnceWithTheLastOfBuffersDroppedByFourThreads) {
  const auto budget = Budget(kMiB);
  for (int round = 0; round < 200; ++round) {
    log_.source_is_gone = false;
    auto pool = MakePool({budget});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([buffer = *pool->Make(0)]() mutable { buffer = Buffer(); });
    }
    pool.reset();
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(log_.source_is_gone) << round;
    ASSERT_EQ(log_.live, 0) << round;
    ASSERT_EQ(budget->bytes_in_use(), 0u) << round;
  }
}

}  // namespace
}  // namespace verbena
