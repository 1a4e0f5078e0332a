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

struct BufferBlock;

// Where a block goes when nobody refers to it any more. Any thread.
class BlockHome {
 public:
  virtual void GiveBack(BufferBlock* block) = 0;

 protected:
  ~BlockHome() = default;
};

// What Buffers refer to. Made by a BlockPool, by Buffer::Wrap, or for a message in a receive slot
// (receive_ring.h); not for users.
struct BufferBlock {
  std::atomic<uint32_t> references{0};
  uint32_t index = 0;  // In its pool.
  uint32_t size_class = 0;
  bool taken_lately = false;  // BlockPool::TrimIdle.
  uint64_t id = 0;            // Of this memory; never used again for another in this process.
  std::span<std::byte> bytes;
  // Null: can't be kept longer than the block, nor registered anew.
  std::shared_ptr<BlockMemory> memory;
  // Where the memory was registered when it was made; 0: nowhere.
  uint64_t domain_id = 0;
  MemoryRegion* region = nullptr;
  BlockHome* home = nullptr;  // Null: of none, and deleted after its last reference.
  // While somebody refers to the block, so that it outlives its users. Null: of no pool.
  std::shared_ptr<BlockPool> pool;

  static void Release(BufferBlock* block);  // The last reference is gone.
  static uint64_t NextId();
};

class Buffer {
 public:
  Buffer() = default;
  // The only one that refers to `block`: to all of it, or to its first `bytes`.
  static Buffer First(BufferBlock* block, size_t bytes) {
    DCHECK_LE(bytes, block->bytes.size());
    block->references.store(1, std::memory_order_relaxed);  // Nobody else knows it.
    Buffer buffer;
    buffer.block_ = block;
    buffer.data_ = block->bytes.data();
    buffer.size_ = bytes;
    return buffer;
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
  ~Buffer() { LetGo(); }
  // As if it were made anew.
  void Reset() {
    LetGo();
    block_ = nullptr;
    data_ = nullptr;
    size_ = 0;
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
  Buffer Slice(size_t offset, size_t bytes) const& { return Buffer(*this).Slice(offset, bytes); }
  Buffer Slice(size_t offset, size_t bytes) && {
    DCHECK_LE(offset, size_);
    DCHECK_LE(bytes, size_ - offset);
    data_ += offset;
    size_ = bytes;
    return std::move(*this);
  }

  // All of the block that it is in.
  Buffer Whole() && {
    if (block_ == nullptr) return Buffer();
    data_ = block_->bytes.data();
    size_ = block_->bytes.size();
    return std::move(*this);
  }

  // Whether nothing else refers to the memory. REQUIRES: block() is not null.
  bool IsOnly() const { return block_->references.load(std::memory_order_acquire) == 1; }

  // For the transport.
  BufferBlock* block() const { return block_; }

 private:
  void LetGo() {
    if (block_ == nullptr) return;
    // A new reference can only be made of an old one, so the last needs no locked instruction.
    if (IsOnly() || block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      BufferBlock::Release(block_);
    }
  }

  BufferBlock* block_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace verbena
