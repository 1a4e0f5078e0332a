// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/buffer.h"

#include <utility>

#include "verbena/transport/block_pool.h"

namespace verbena {
namespace {

class WrappedMemory : public BlockMemory {
 public:
  explicit WrappedMemory(std::function<void()> release) : release_(std::move(release)) {}
  ~WrappedMemory() override {
    if (release_) release_();
  }

 private:
  const std::function<void()> release_;
};

}  // namespace

void BufferBlock::Release(BufferBlock* block) {
  if (block->home == nullptr) {
    delete block;
  } else {
    block->home->GiveBack(block);
  }
}

uint64_t BufferBlock::NextId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Buffer Buffer::Wrap(std::span<std::byte> memory, std::function<void()> release) {
  auto block = std::make_unique<BufferBlock>();
  block->id = BufferBlock::NextId();
  block->bytes = memory;
  block->memory = std::make_shared<WrappedMemory>(std::move(release));
  return First(block.release(), memory.size());
}

}  // namespace verbena
