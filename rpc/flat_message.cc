// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/flat_message.h"

#include <cstring>
#include <new>

namespace verbena {
namespace {

constexpr size_t kHeapAlignment = 64;

class HeapHome final : public BlockHome {
 public:
  void GiveBack(BufferBlock* block) override {
    ::operator delete (block->bytes.data(), std::align_val_t{kHeapAlignment});
    delete block;
  }
};

// Without BufferBlock::memory, so that it is not registered but copied to memory that is counted.
Buffer HeapBuffer(size_t bytes) {
  static HeapHome home;
  auto* const block = new BufferBlock;
  block->home = &home;
  block->id = BufferBlock::NextId();
  block->bytes = {static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kHeapAlignment})),
                  bytes};
  return Buffer::First(block, bytes);
}

}  // namespace

void FlatMessageBytes::CopyFrom(std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    buffer_ = Buffer();
    return;
  }
  buffer_ = HeapBuffer(bytes.size());
  std::memcpy(buffer_.data(), bytes.data(), bytes.size());
}

void FlatMessageAllocator::TakeBlock(size_t bytes) {
  bytes = RoundDown(bytes + kEndAlignment - 1);
  absl::StatusOr<Buffer> taken =
      memory_ != nullptr ? memory_->TakeMessageMemory(bytes) : HeapBuffer(bytes);
  // Without memory of the budget it is built all the same, and the call says what is missing.
  block_ = taken.ok() ? *std::move(taken) : HeapBuffer(bytes);
  end_ = RoundDown(block_.size());
}

uint8_t* FlatMessageAllocator::reallocate_downward(uint8_t* old_p, size_t old_size, size_t new_size,
                                                   size_t in_use_back, size_t in_use_front) {
  if (new_size <= end_) {
    uint8_t* const new_p = old_p + old_size - new_size;
    std::memmove(new_p, old_p, in_use_front);
    return new_p;
  }
  const Buffer old = std::move(block_);
  TakeBlock(new_size);
  auto* const new_p = reinterpret_cast<uint8_t*>(block_.data() + end_ - new_size);
  memcpy_downward(old_p, old_size, new_p, new_size, in_use_back, in_use_front);
  return new_p;
}

}  // namespace verbena
