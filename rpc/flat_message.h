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
//   - built before the channel was first connected, or for another channel, and too long to go
//     inline, yet short enough for a slot;
//   - sent beside attachments that are so short that all goes in one slot;
//   - received in a slot while a quarter of the ring's slots hold messages that are still in use;
//   - of a table with fields aligned to more than 8 bytes (force_align), on arrival.
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
  void set_buffer(Buffer buffer) { buffer_ = std::move(buffer); }
  Buffer TakeBuffer() { return std::exchange(buffer_, Buffer()); }
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

  uint8_t* allocate(size_t size) override;
  void deallocate(uint8_t* p, size_t size) override;
  uint8_t* reallocate_downward(uint8_t* old_p, size_t old_size, size_t new_size, size_t in_use_back,
                               size_t in_use_front) override;
  // What was built: `bytes` at `data`.
  Buffer TakeBuilt(const uint8_t* data, size_t bytes);

 private:
  // Whether the next message can be built in the block, too.
  bool BlockServes();
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
  // For requests on this channel. `initial_bytes`: about what the message will have; when it is
  // more than the block it is in has room for (16 KiB at least), what was built so far is moved to
  // a larger one.
  explicit FlatMessageBuilder(Channel& channel, size_t initial_bytes = kInitialBytes);
  // For the response to this call, or calls that its handler makes.
  explicit FlatMessageBuilder(ServerContext& context, size_t initial_bytes = kInitialBytes);
  // In memory from the heap: what is built is copied when it is sent.
  explicit FlatMessageBuilder(size_t initial_bytes = kInitialBytes);

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
  Buffer ReleaseBuffer();
};

}  // namespace verbena
