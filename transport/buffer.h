// SPDX-License-Identifier: Apache-2.0
//
// Buffer: a reference-counted slice of memory that a device can send from, or has received into.
//
// Copying a Buffer copies a pointer and a count, never bytes. The memory is given back when the
// last Buffer that refers to it is gone, to the pool it came from (block_pool.h) or to the user
// (Wrap). Sending one copies nothing either; the memory belongs to the device, too, until the
// message is out, and the library holds a reference so long. Do not change it meanwhile: the
// receiver would see either state.
//
// Threads: the count is atomic, so Buffers of one memory may be dropped on any thread. One Buffer
// object is like an int: not to be changed while another thread looks at it.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "glog/logging.h"
#include "verbena/transport/work_request.h"

namespace verbena {

class BlockPool;

// Keeps a range of memory there as long as somebody refers to it. What it was made from (an arena,
// a registration, the user's promise) goes when it does, on any thread.
class BlockMemory {
 public:
  virtual ~BlockMemory() = default;
};

// What Buffers refer to. Made by a BlockPool or by Buffer::Wrap; not for users.
struct BufferBlock {
  std::atomic<uint32_t> references{0};
  uint32_t index = 0;  // In its pool.
  uint32_t size_class = 0;
  bool taken_lately = false;  // BlockPool::TrimIdle.
  uint64_t id = 0;            // Of this memory; never used again for another in this process.
  std::span<std::byte> bytes;
  std::shared_ptr<BlockMemory> memory;
  // Where the memory was registered when it was made; 0: nowhere.
  uint64_t domain_id = 0;
  MemoryRegion* region = nullptr;
  // While somebody refers to the block, so that it outlives its users. Null: of no pool.
  std::shared_ptr<BlockPool> pool;

  static void Release(BufferBlock* block);  // The last reference is gone.
  static uint64_t NextId();
};

class Buffer {
 public:
  Buffer() = default;
  // All of `block`, or its first `bytes`. Adds a reference.
  explicit Buffer(BufferBlock* block, size_t bytes)
      : block_(block), data_(block->bytes.data()), size_(bytes) {
    DCHECK_LE(bytes, block->bytes.size());
    block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer(const Buffer& other) : block_(other.block_), data_(other.data_), size_(other.size_) {
    if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (block_ != nullptr && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      BufferBlock::Release(block_);
    }
  }

  // Memory of the user's. `release` runs when nothing refers to it any more: no Buffer, and no
  // connection that sent from it, which keeps it registered up to some seconds after the last use.
  // Any thread; must not block.
  static Buffer Wrap(std::span<std::byte> memory, std::function<void()> release = nullptr);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }  // Bytes.
  bool empty() const { return size_ == 0; }
  std::span<std::byte> span() const { return {data_, size_}; }
  // A part of it; shares the memory. REQUIRES: offset + bytes <= size().
  Buffer Slice(size_t offset, size_t bytes) const {
    DCHECK_LE(offset, size_);
    DCHECK_LE(bytes, size_ - offset);
    Buffer slice(*this);
    slice.data_ += offset;
    slice.size_ = bytes;
    return slice;
  }

  // For the transport.
  BufferBlock* block() const { return block_; }

 private:
  BufferBlock* block_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace verbena
