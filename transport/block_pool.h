// SPDX-License-Identifier: Apache-2.0
//
// BlockPool: blocks of memory in size classes, used again and again. Taking one that was used
// before and giving one back takes no lock, no allocation and no system call; making one is slow.
//
// Size classes: 16 KiB, then eight to a doubling, so that a block is at most an eighth larger than
// what was asked for.
//
// Unused blocks of a class are a stack of indices, last in first out, so that the memory that comes
// next is the one most likely in a cache. An unused pool is about 2 KiB; 256 blocks add 4 KiB, and
// each block about 100 bytes and its memory.
//
// Threads: any. Lifetime: shared; blocks that are in use keep their pool. The memory of a block can
// be kept longer than the block (BufferBlock::memory); its budgets get it back with the block.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/buffer.h"
#include "verbena/transport/memory_budget.h"

namespace verbena {

inline constexpr size_t kBlockBytesMin = 16 * 1024;
// 2^14 to 2^40, eight to a doubling, and the last.
inline constexpr uint32_t kSizeClassCount = (40 - 14) * 8 + 1;

// The smallest class whose blocks take `bytes`. REQUIRES: bytes <= SizeOfClass(kSizeClassCount -
// 1).
uint32_t ClassOfSize(size_t bytes);
size_t SizeOfClass(uint32_t size_class);

// Where a pool's memory comes from.
class BlockSource {
 public:
  struct Made {
    std::span<std::byte> bytes;
    std::shared_ptr<BlockMemory> memory;
    uint64_t domain_id = 0;
    MemoryRegion* region = nullptr;
  };
  virtual ~BlockSource() = default;
  // At least `bytes`, which `memory` keeps. Slow. Any threads, also several at once.
  virtual absl::StatusOr<Made> Make(size_t bytes) = 0;
};

class BlockPool final : public std::enable_shared_from_this<BlockPool>, private BlockHome {
 public:
  // Charges each block to all of `budgets`, in this order. At most kBlocksMax blocks.
  static std::shared_ptr<BlockPool> Create(std::unique_ptr<BlockSource> source,
                                           std::vector<std::shared_ptr<MemoryBudget>> budgets);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // An unused block of `size_class` or of one of the seven above it (at most twice the size). Empty
  // when there is none. Fast. The buffer has the block's whole size.
  Buffer TakeUnused(uint32_t size_class);
  // Makes a block. When a budget or kBlocksMax is exhausted, unused blocks of this pool are
  // destroyed first to make room. Slow. The buffer has the block's whole size. Errors:
  // RESOURCE_EXHAUSTED naming the budget, FAILED_PRECONDITION after Close(), or the source's.
  absl::StatusOr<Buffer> Make(uint32_t size_class);
  // Either. The buffer has the block's whole size. Errors: as Make(), and RESOURCE_EXHAUSTED when it
  // is larger than the largest class.
  absl::StatusOr<Buffer> TakeWhole(size_t bytes);
  // The same; the buffer has `bytes`.
  absl::StatusOr<Buffer> Take(size_t bytes);
  // Whether a block of this class could be made now, and if not, why. `ever`: whether it could if
  // nothing else were in use. Unused blocks of this pool don't count as room, so Make() may succeed
  // where this doesn't.
  absl::Status CheckRoom(uint32_t size_class, bool* ever) const;

  // Destroys unused blocks: all, or those of one class.
  void Trim();
  void TrimClass(uint32_t size_class);
  // Destroys the unused blocks that nobody took since the last call of this. One thread at a time.
  void TrimIdle();
  // No block will be taken any more: blocks are destroyed when they come back, and unused ones now.
  // A Take or Make that runs meanwhile may still return one. Waits for nobody.
  void Close();

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // Of all its blocks.
  uint32_t block_count() const { return block_count_.load(std::memory_order_relaxed); }

  // What a flood of small blocks may cost besides budgets: 64 MiB of the smallest class.
  static constexpr uint32_t kBlocksMax = 4096;

 private:
  BlockPool(std::unique_ptr<BlockSource> source,
            std::vector<std::shared_ptr<MemoryBudget>> budgets);
  void GiveBack(BufferBlock* block) override;
  Buffer HandOut(BufferBlock* block);
  absl::Status Charge(uint64_t bytes);
  void Refund(uint64_t bytes);
  // Budgets and an index. Nothing is taken when it fails.
  absl::Status Reserve(uint64_t bytes, uint32_t* index);
  void Destroy(BufferBlock* block);

  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint32_t> block_count_{0};
};

}  // namespace verbena
