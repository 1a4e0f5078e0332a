// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/block_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/index_stack.h"

namespace verbena {
namespace {

constexpr uint32_t kClassesPerDoubling = 8;
constexpr uint32_t kMinBits = std::bit_width(kBlockBytesMin) - 1;
constexpr uint32_t kStepBits = std::bit_width(kClassesPerDoubling) - 1;
static_assert(kBlockBytesMin == size_t{1} << kMinBits);

absl::Status BlocksExhausted() {
  return absl::ResourceExhaustedError(absl::StrCat("a block pool has at most ",
                                                   BlockPool::kBlocksMax,
                                                   " blocks: hold fewer Buffers, or larger ones"));
}

}  // namespace

uint32_t ClassOfSize(size_t bytes) {
  if (bytes <= kBlockBytesMin) return 0;
  // Classes end at their size, so it is the last byte that says which one: 2^bits <= last < 2^(bits
  // + 1), and the next three bits of it count the eighths.
  const size_t last = bytes - 1;
  const uint32_t bits = std::bit_width(last) - 1;
  const uint32_t eighths = (last >> (bits - kStepBits)) & (kClassesPerDoubling - 1);
  const uint32_t size_class = (bits - kMinBits) * kClassesPerDoubling + eighths + 1;
  DCHECK_LT(size_class, kSizeClassCount) << bytes;
  return size_class;
}

size_t SizeOfClass(uint32_t size_class) {
  DCHECK_LT(size_class, kSizeClassCount);
  const uint32_t doublings = size_class / kClassesPerDoubling;
  const size_t eighths = kClassesPerDoubling + size_class % kClassesPerDoubling;
  return eighths << (kMinBits + doublings - kStepBits);
}

// Indices 0 to kBlocksMax - 1 name blocks. An index is always in one place: in the stack of its
// class (its block is unused), in `free` (it has no block), not `fresh` yet, with the users of its
// block, or with the one thread that makes or destroys it. Only that thread writes Slot::block.
struct BlockPool::Impl {
  struct Slot {
    BufferBlock* block = nullptr;
    std::atomic<uint32_t> next{0};  // IndexStack's.
  };
  static constexpr uint32_t kChunkSlots = 256;  // 4 KiB.
  using Chunk = std::array<Slot, kChunkSlots>;
  static_assert(kBlocksMax % kChunkSlots == 0);

  Impl(std::unique_ptr<BlockSource> source, std::vector<std::shared_ptr<MemoryBudget>> budgets)
      : source(std::move(source)), budgets(std::move(budgets)) {}

  // No lock needed to find a slot: its chunk was there before its index first went into a stack.
  Slot& At(uint32_t index) { return (*chunks[index / kChunkSlots])[index % kChunkSlots]; }

  uint32_t Next(uint32_t index) { return At(index).next.load(std::memory_order_relaxed); }
  void SetNext(uint32_t index, uint32_t next) {
    At(index).next.store(next, std::memory_order_relaxed);
  }

  // An index without a block. False when there are kBlocksMax blocks.
  bool TakeIndex(uint32_t* index) {
    if (free.TryPop(*this, index)) return true;
    std::lock_guard lock(mutex);
    if (fresh == kBlocksMax) return false;
    std::unique_ptr<Chunk>& chunk = chunks[fresh / kChunkSlots];
    if (chunk == nullptr) chunk = std::make_unique<Chunk>();
    *index = fresh++;
    return true;
  }

  const std::unique_ptr<BlockSource> source;
  const std::vector<std::shared_ptr<MemoryBudget>> budgets;
  std::atomic<bool> closed{false};
  std::array<IndexStack, kSizeClassCount> unused;
  IndexStack free;
  std::array<std::unique_ptr<Chunk>, kBlocksMax / kChunkSlots> chunks;
  std::mutex mutex;
  uint32_t fresh = 0;  // From here on indices were never used. Under `mutex`.
};

std::shared_ptr<BlockPool> BlockPool::Create(std::unique_ptr<BlockSource> source,
                                             std::vector<std::shared_ptr<MemoryBudget>> budgets) {
  return std::shared_ptr<BlockPool>(new BlockPool(std::move(source), std::move(budgets)));
}

BlockPool::BlockPool(std::unique_ptr<BlockSource> source,
                     std::vector<std::shared_ptr<MemoryBudget>> budgets)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(budgets))) {}

BlockPool::~BlockPool() {
  Trim();
  DCHECK_EQ(block_count(), 0u) << "a block in use did not keep its pool";
}

Buffer BlockPool::TakeUnused(uint32_t size_class) {
  if (impl_->closed.load(std::memory_order_relaxed)) return Buffer();
  const uint32_t end = std::min(size_class + kClassesPerDoubling, kSizeClassCount);
  for (; size_class < end; ++size_class) {
    uint32_t index;
    if (impl_->unused[size_class].TryPop(*impl_, &index)) return HandOut(impl_->At(index).block);
  }
  return Buffer();
}

absl::StatusOr<Buffer> BlockPool::Make(uint32_t size_class) {
  const size_t bytes = SizeOfClass(size_class);
  bool ever;
  absl::Status status = CheckRoom(size_class, &ever);
  if (!ever) return status;  // Nor would it help to trim.
  uint32_t index;
  status = Reserve(bytes, &index);
  if (!status.ok()) {
    Trim();
    status = Reserve(bytes, &index);
  }
  if (!status.ok()) return status;
  absl::StatusOr<BlockSource::Made> made = impl_->source->Make(bytes);
  if (!made.ok()) {
    Refund(bytes);
    impl_->free.Push(*impl_, index);
    return made.status();
  }
  CHECK_GE(made->bytes.size(), bytes) << "a source made less than was asked for";
  auto* block = new BufferBlock;
  block->index = index;
  block->size_class = size_class;
  block->id = BufferBlock::NextId();
  block->bytes = made->bytes.first(bytes);
  block->memory = std::move(made->memory);
  block->domain_id = made->domain_id;
  block->region = made->region;
  impl_->At(index).block = block;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  block_count_.fetch_add(1, std::memory_order_relaxed);
  return HandOut(block);
}

absl::StatusOr<Buffer> BlockPool::TakeWhole(size_t bytes) {
  constexpr uint32_t kLast = kSizeClassCount - 1;
  if (bytes > SizeOfClass(kLast)) {
    return absl::ResourceExhaustedError(absl::StrCat("a block of ", bytes,
                                                     " bytes; one has at most ", SizeOfClass(kLast),
                                                     ": divide it into several"));
  }
  const uint32_t size_class = ClassOfSize(bytes);
  Buffer unused = TakeUnused(size_class);
  if (unused.block() != nullptr) return unused;
  return Make(size_class);
}

absl::StatusOr<Buffer> BlockPool::Take(size_t bytes) {
  absl::StatusOr<Buffer> whole = TakeWhole(bytes);
  if (!whole.ok()) return whole;
  return (*std::move(whole)).Slice(0, bytes);
}

absl::Status BlockPool::CheckRoom(uint32_t size_class, bool* ever) const {
  *ever = false;
  if (impl_->closed.load(std::memory_order_relaxed)) {
    return absl::FailedPreconditionError("the block pool is closed");
  }
  const size_t bytes = SizeOfClass(size_class);
  absl::Status status;
  for (const std::shared_ptr<MemoryBudget>& budget : impl_->budgets) {
    if (bytes > budget->bytes_max()) return budget->Exhausted(bytes);
    if (status.ok() && budget->bytes_in_use() > budget->bytes_max() - bytes) {
      status = budget->Exhausted(bytes);
    }
  }
  *ever = true;
  if (status.ok() && block_count() == kBlocksMax) {
    status = BlocksExhausted();
  }
  return status;
}

void BlockPool::Trim() {
  for (uint32_t size_class = 0; size_class < kSizeClassCount; ++size_class) TrimClass(size_class);
}

void BlockPool::TrimClass(uint32_t size_class) {
  uint32_t index;
  while (impl_->unused[size_class].TryPop(*impl_, &index)) Destroy(impl_->At(index).block);
}

void BlockPool::TrimIdle() {
  absl::InlinedVector<uint32_t, 64> stay;
  for (uint32_t size_class = 0; size_class < kSizeClassCount; ++size_class) {
    IndexStack& unused = impl_->unused[size_class];
    uint32_t index;
    while (unused.TryPop(*impl_, &index)) {
      BufferBlock* const block = impl_->At(index).block;
      if (std::exchange(block->taken_lately, false)) {
        stay.push_back(index);
      } else {
        Destroy(block);
      }
    }
    for (const uint32_t kept : stay) unused.Push(*impl_, kept);
    stay.clear();
  }
  if (impl_->closed.load()) Trim();
}

// Order: here the mark and then the look at the stacks; in GiveBack() the push and then the look at
// the mark. All four are sequentially consistent, so at least one of the two sees the other.
void BlockPool::Close() {
  impl_->closed.store(true);
  Trim();
}

void BlockPool::GiveBack(BufferBlock* block) {
  // A local of its own: this may be the last that holds the pool, and once the block is unused,
  // `block->pool` belongs to the next who takes it.
  const std::shared_ptr<BlockPool> self = std::move(block->pool);
  const uint32_t size_class = block->size_class;
  impl_->unused[size_class].Push(*impl_, block->index);
  // `block` is somebody else's now.
  if (impl_->closed.load()) TrimClass(size_class);
}

Buffer BlockPool::HandOut(BufferBlock* block) {
  block->home = this;
  block->pool = shared_from_this();
  block->taken_lately = true;
  return Buffer::First(block, block->bytes.size());
}

absl::Status BlockPool::Charge(uint64_t bytes) {
  for (size_t i = 0; i < impl_->budgets.size(); ++i) {
    if (impl_->budgets[i]->TryCharge(bytes)) continue;
    const absl::Status status = impl_->budgets[i]->Exhausted(bytes);
    while (i-- > 0) impl_->budgets[i]->Refund(bytes);
    return status;
  }
  return absl::OkStatus();
}

void BlockPool::Refund(uint64_t bytes) {
  for (const std::shared_ptr<MemoryBudget>& budget : impl_->budgets) budget->Refund(bytes);
}

absl::Status BlockPool::Reserve(uint64_t bytes, uint32_t* index) {
  absl::Status status = Charge(bytes);
  if (!status.ok() || impl_->TakeIndex(index)) return status;
  Refund(bytes);
  return BlocksExhausted();
}

void BlockPool::Destroy(BufferBlock* block) {
  const uint32_t index = block->index;
  const uint64_t bytes = block->bytes.size();
  impl_->At(index).block = nullptr;
  delete block;
  // After the memory, so that what is charged is never less than what there is.
  Refund(bytes);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  block_count_.fetch_sub(1, std::memory_order_relaxed);
  impl_->free.Push(*impl_, index);
}

}  // namespace verbena
