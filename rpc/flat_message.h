// SPDX-License-Identifier: Apache-2.0
//
// FlatMessage: a finished FlatBuffer, as generated stubs and services pass it; and the builder that
// makes one in registered memory.
//
//   FlatMessageBuilder builder(*channel);
//   builder.Finish(CreateHelloRequest(builder, builder.CreateString("world")));
//   FlatMessage<HelloRequest> request = builder.ReleaseMessage<HelloRequest>();
//   FlatMessage<HelloReply> reply;
//   absl::Status status = stub->SayHello(&context, request, &reply);
//   ... reply->text()->str() ...
//
// A message is sent from where it was built and read where it landed: nothing is copied, unless the
// device can't read the memory (ChannelStatistics::payload_bytes_copied counts what was):
//   - built before the channel was first connected, and too long to go inline;
//   - built for another channel or an earlier connection, and too long to go inline, yet short enough
//     for a slot;
//   - sent beside attachments that are so short that all goes in one slot;
//   - received in a slot while a quarter of the ring's slots hold messages that are still in use;
//   - of a table with fields aligned to more than 8 bytes (force_align), on arrival in a slot.
//
// Threads: a builder serves one thread at a time; a FlatMessage is like a Buffer. Lifetime: a
// builder must not outlive its channel or context; a message may. A received message that is kept
// keeps its memory: a receive slot, or what landed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "flatbuffers/flatbuffers.h"
#include "verbena/rpc/channel.h"
#include "verbena/rpc/message_memory.h"
#include "verbena/rpc/server_context.h"
#include "verbena/transport/buffer.h"

namespace verbena {

// Without the type of its root. Copies share the memory.
class FlatMessageBytes {
 public:
  bool empty() const { return buffer_.empty(); }
  // The whole FlatBuffer; aligned as its content asks for. Not to be changed any more.
  std::span<const std::byte> bytes() const { return buffer_.span(); }

  // For the codec.
  const Buffer& buffer() const { return buffer_; }
  void set_buffer(Buffer buffer) { std::swap(buffer_, buffer); }
  Buffer TakeBuffer() { return std::move(buffer_); }
  void Clear() { buffer_.Reset(); }
  // As set_buffer, with a copy in memory of its own.
  void CopyFrom(std::span<const std::byte> bytes);

 protected:
  FlatMessageBytes() = default;
  explicit FlatMessageBytes(Buffer buffer) : buffer_(std::move(buffer)) {}

 private:
  Buffer buffer_;
};

// A FlatBuffer whose root is a `Table`. One that a stub or a server has received is verified.
// Empty: none; its root is null.
template <class Table>
class FlatMessage : public FlatMessageBytes {
 public:
  FlatMessage() = default;

  const Table* GetRoot() const {
    return empty() ? nullptr : flatbuffers::GetRoot<Table>(bytes().data());
  }
  const Table* operator->() const { return GetRoot(); }  // REQUIRES: !empty().
  const Table& operator*() const { return *GetRoot(); }

 private:
  friend class FlatMessageBuilder;
  explicit FlatMessage(Buffer buffer) : FlatMessageBytes(std::move(buffer)) {}
};

// Gives FlatBuffers' builder its memory. Grows a message where it is as long as the block it is in
// has room, and builds the next one in the same block when nobody refers to the last any more.
class FlatMessageAllocator : public flatbuffers::Allocator {
 public:
  // `spare`: a block to begin with, or empty.
  explicit FlatMessageAllocator(MessageMemory* memory, Buffer spare = Buffer())
      : memory_(memory), block_(std::move(spare)) {}

  uint8_t* allocate(size_t size) final {
    if (!BlockServes() || end_ < size) [[unlikely]]
      TakeBlock(size);
    return reinterpret_cast<uint8_t*>(block_.data() + end_ - size);
  }
  void deallocate(uint8_t*, size_t) final {}  // The block stays.
  uint8_t* reallocate_downward(uint8_t* old_p, size_t old_size, size_t new_size, size_t in_use_back,
                               size_t in_use_front) final;
  // What was built: `bytes` at `data`.
  Buffer TakeBuilt(const uint8_t* data, size_t bytes) {
    const auto offset =
        static_cast<size_t>(reinterpret_cast<const std::byte*>(data) - block_.data());
    if (!std::exchange(again_, true)) return std::move(block_).Slice(offset, bytes);
    end_ = RoundDown(offset);
    return block_.Slice(offset, bytes);
  }

 private:
  // Messages end at multiples of this, and FlatBuffers aligns what is in them from their ends: more
  // than the 32 that force_align may ask for, and a cache line.
  static constexpr size_t kEndAlignment = 64;
  static constexpr size_t RoundDown(size_t offset) { return offset & ~(kEndAlignment - 1); }

  // Whether the next message can be built in the block, too.
  bool BlockServes() {
    if (block_.block() == nullptr) return false;
    // Of an earlier connection, or from before there was one.
    if (memory_ != nullptr && block_.block()->domain_id != memory_->message_domain_id()) {
      return false;
    }
    if (block_.IsOnly()) end_ = RoundDown(block_.size());
    return true;
  }
  void TakeBlock(size_t bytes);

  MessageMemory* const memory_;  // Null: from the heap.
  Buffer block_;                 // All of a block; what is built is in it, or will be.
  size_t end_ = 0;               // Where what is built ends in it; messages before are behind.
  bool again_ = false;           // More than one message: worth to keep the block.
};

// flatbuffers::FlatBufferBuilder in memory of a channel or of a server's connection. Once a message
// was released the next may be built; that is cheaper than with a new builder.
class FlatMessageBuilder : private FlatMessageAllocator, public flatbuffers::FlatBufferBuilder {
 public:
  // For requests on this channel. `initial_bytes`: what the message will have, and a little more.
  // One that outgrows it is moved to larger memory (half as much again) each time that its block has
  // no room; blocks have 16 KiB at least.
  explicit FlatMessageBuilder(Channel& channel, size_t initial_bytes = kInitialBytes)
      : FlatMessageAllocator(&channel.message_memory()),
        FlatBufferBuilder(initial_bytes, static_cast<FlatMessageAllocator*>(this)) {}
  // For the response to this call, or calls that its handler makes.
  explicit FlatMessageBuilder(ServerContext& context, size_t initial_bytes = kInitialBytes)
      : FlatMessageAllocator(context.message_memory(), context.TakeSpareMemory()),
        FlatBufferBuilder(initial_bytes, static_cast<FlatMessageAllocator*>(this)) {}
  // In memory from the heap: what is built is copied when it is sent.
  explicit FlatMessageBuilder(size_t initial_bytes = kInitialBytes)
      : FlatMessageAllocator(nullptr),
        FlatBufferBuilder(initial_bytes, static_cast<FlatMessageAllocator*>(this)) {}

  FlatMessageBuilder(const FlatMessageBuilder&) = delete;
  FlatMessageBuilder& operator=(const FlatMessageBuilder&) = delete;

  // What Finish() has finished; an empty message if it was not called.
  template <class Table>
  FlatMessage<Table> ReleaseMessage() {
    return FlatMessage<Table>(ReleaseBuffer());
  }

 private:
  static constexpr size_t kInitialBytes = 1024;
  // The memory is no DetachedBuffer's.
  using FlatBufferBuilder::Release;
  using FlatBufferBuilder::ReleaseBufferPointer;
  using FlatBufferBuilder::ReleaseRaw;
  Buffer ReleaseBuffer() {
    Buffer message;
    if (finished) [[likely]] {
      message = TakeBuilt(GetBufferPointer(), GetSize());
      size_t size, offset;
      ReleaseRaw(size, offset);  // The memory is the allocator's: the next message asks for more.
    }
    Clear();
    return message;
  }
};

}  // namespace verbena
