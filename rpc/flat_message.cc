// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/flat_message.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace verbena {
namespace {

// Messages end at multiples of this, and FlatBuffers aligns what is in them from their ends. As
// much as force_align may ask for, short of 256 (which flatc takes, too: those are copied on
// arrival).
constexpr size_t kEndAlignment = 64;

class HeapHome final : public BlockHome {
 public:
  void GiveBack(BufferBlock* block) override {
    ::operator delete (block->bytes.data(), std::align_val_t{kEndAlignment});
    delete block;
  }
};

// Without BufferBlock::memory, so that it is not registered but copied to memory that is counted.
Buffer HeapBuffer(size_t bytes) {
  static HeapHome home;
  auto* const block = new BufferBlock;
  block->home = &home;
  block->id = BufferBlock::NextId();
  block->bytes = {static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kEndAlignment})),
                  bytes};
  return Buffer::First(block, bytes);
}

size_t RoundUp(size_t bytes) { return (bytes + kEndAlignment - 1) & ~(kEndAlignment - 1); }

}  // namespace

void FlatMessageBytes::CopyFrom(std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    buffer_ = Buffer();
    return;
  }
  buffer_ = HeapBuffer(bytes.size());
  std::memcpy(buffer_.data(), bytes.data(), bytes.size());
}

bool FlatMessageAllocator::BlockServes() {
  if (block_.block() == nullptr) return false;
  // Of an earlier connection, or from before there was one.
  if (memory_ != nullptr && block_.block()->domain_id != memory_->message_domain_id()) return false;
  if (block_.IsOnly()) end_ = block_.size() & ~(kEndAlignment - 1);
  return true;
}

void FlatMessageAllocator::TakeBlock(size_t bytes) {
  absl::StatusOr<Buffer> taken =
      memory_ != nullptr ? memory_->TakeMessageMemory(bytes) : HeapBuffer(bytes);
  // Without memory of the budget it is built all the same, and the call says what is missing.
  block_ = taken.ok() ? *std::move(taken) : HeapBuffer(bytes);
  end_ = block_.size() & ~(kEndAlignment - 1);
}

uint8_t* FlatMessageAllocator::allocate(size_t size) {
  if (!BlockServes() || end_ < size) TakeBlock(RoundUp(size));
  return reinterpret_cast<uint8_t*>(block_.data() + end_ - size);
}

void FlatMessageAllocator::deallocate(uint8_t*, size_t) {}

uint8_t* FlatMessageAllocator::reallocate_downward(uint8_t* old_p, size_t old_size, size_t new_size,
                                                   size_t in_use_back, size_t in_use_front) {
  if (new_size <= end_) {
    uint8_t* const new_p = old_p + old_size - new_size;
    std::memmove(new_p, old_p, in_use_front);
    return new_p;
  }
  const Buffer old = std::move(block_);
  TakeBlock(RoundUp(new_size));
  auto* const new_p = reinterpret_cast<uint8_t*>(block_.data() + end_ - new_size);
  memcpy_downward(old_p, old_size, new_p, new_size, in_use_back, in_use_front);
  return new_p;
}

Buffer FlatMessageAllocator::TakeBuilt(const uint8_t* data, size_t bytes) {
  const auto offset = static_cast<size_t>(reinterpret_cast<const std::byte*>(data) - block_.data());
  if (!std::exchange(again_, true)) return std::move(block_).Slice(offset, bytes);
  end_ = offset & ~(kEndAlignment - 1);
  return block_.Slice(offset, bytes);
}

FlatMessageBuilder::FlatMessageBuilder(Channel& channel, size_t initial_bytes)
    : FlatMessageAllocator(&channel.message_memory()),
      FlatBufferBuilder(initial_bytes, static_cast<FlatMessageAllocator*>(this)) {}

FlatMessageBuilder::FlatMessageBuilder(ServerContext& context, size_t initial_bytes)
    : FlatMessageAllocator(context.message_memory(), context.TakeSpareMemory()),
      FlatBufferBuilder(initial_bytes, static_cast<FlatMessageAllocator*>(this)) {}

FlatMessageBuilder::FlatMessageBuilder(size_t initial_bytes)
    : FlatMessageAllocator(nullptr),
      FlatBufferBuilder(initial_bytes, static_cast<FlatMessageAllocator*>(this)) {}

Buffer FlatMessageBuilder::ReleaseBuffer() {
  if (!finished) {
    Clear();
    return Buffer();
  }
  const uint8_t* const data = GetBufferPointer();
  Buffer message = TakeBuilt(data, GetSize());
  size_t size, offset;
  ReleaseRaw(size, offset);  // The memory is the allocator's: the next message asks it for more.
  Clear();
  return message;
}

}  // namespace verbena
