// SPDX-License-Identifier: Apache-2.0
//
// Heap allocations of taking and giving back in steady state: none. A test of its own, since it
// brings its own operator new.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "verbena/transport/block_pool.h"

namespace {

int64_t allocations = 0;

}  // namespace

// Not inlined: where GCC sees only one of a pair, it warns of malloc() and delete or new and
// free().
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new[](size_t bytes) { return operator new(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace verbena {
namespace {

class HeapMemory : public BlockMemory {
 public:
  explicit HeapMemory(size_t bytes) : bytes_(new std::byte[bytes]) {}
  std::byte* data() const { return bytes_.get(); }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
};

class HeapSource : public BlockSource {
 public:
  absl::StatusOr<Made> Make(size_t bytes) override {
    auto memory = std::make_shared<HeapMemory>(bytes);
    return Made{.bytes = {memory->data(), bytes}, .memory = memory};
  }
};

TEST(BlockPoolAllocations, AreNoneWhenABlockIsUsedAgain) {
  const auto pool = BlockPool::Create(std::make_unique<HeapSource>(),
                                      {std::make_shared<MemoryBudget>("a budget", 1 << 20)});
  int64_t before = allocations;
  ASSERT_TRUE(pool->Take(20'000).ok());
  EXPECT_GT(allocations, before) << "the counter doesn't count";
  before = allocations;
  for (int i = 0; i < 1000; ++i) {
    const absl::StatusOr<Buffer> buffer = pool->Take(20'000);
    const Buffer slice = buffer->Slice(1, 2);
    const Buffer copy = slice;
  }
  EXPECT_EQ(allocations - before, 0);
}

// What a connection that never sends a large message pays.
TEST(BlockPoolAllocations, AreFewForAnUnusedPool) {
  const int64_t before = allocations;
  const auto pool = BlockPool::Create(std::make_unique<HeapSource>(), {});
  // Source, pool, its shared_ptr's count, and the stacks.
  EXPECT_EQ(allocations - before, 4);
}

}  // namespace
}  // namespace verbena
