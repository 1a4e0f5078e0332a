// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/flat_message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/unit/rpc/flat_message_generated.h"
#include "verbena/rpc/flatbuffers_codec.h"

namespace verbena {
namespace {

using flat_message_test::Note;
using flat_message_test::Wide;

// Blocks of 4 KiB multiples, as a connection would give; says how many were taken.
class Memory final : public MessageMemory {
 public:
  absl::StatusOr<Buffer> TakeMessageMemory(size_t bytes) override {
    if (!error.ok()) return error;
    ++taken;
    const size_t size = (bytes + 4095) / 4096 * 4096;
    auto memory = std::shared_ptr<std::byte[]>(
        new (std::align_val_t{4096}) std::byte[size],
        [](std::byte* bytes) { ::operator delete[](bytes, std::align_val_t{4096}); });
    Buffer buffer = Buffer::Wrap({memory.get(), size}, [memory] {});
    buffer.block()->domain_id = domain_id;
    return buffer;
  }
  uint64_t message_domain_id() const override { return domain_id; }

  int taken = 0;
  uint64_t domain_id = 1;
  absl::Status error;
};

// What FlatMessageBuilder does, with memory of the test's.
class Builder : public FlatMessageAllocator, public flatbuffers::FlatBufferBuilder {
 public:
  explicit Builder(MessageMemory& memory, size_t initial_bytes = 64)
      : FlatMessageAllocator(&memory),
        FlatBufferBuilder(initial_bytes, static_cast<FlatMessageAllocator*>(this)) {}

  Buffer Build(const std::string& text) {
    Finish(flat_message_test::CreateNote(*this, CreateString(text)));
    Buffer built = TakeBuilt(GetBufferPointer(), GetSize());
    size_t size, offset;
    ReleaseRaw(size, offset);
    Clear();
    return built;
  }
};

std::string TextOf(const Buffer& buffer) {
  EXPECT_TRUE(VerifyFlatBuffer<Note>(buffer.span()));
  return flatbuffers::GetRoot<Note>(buffer.data())->text()->str();
}

TEST(FlatMessageAllocator, BuildsTheNextMessageInTheSameBlock) {
  Memory memory;
  Builder builder(memory);
  builder.Build("the first goes with its block");
  const std::byte* where = nullptr;
  for (int i = 0; i < 100; ++i) {
    const Buffer built = builder.Build("again");
    EXPECT_EQ(TextOf(built), "again");
    if (i > 0) {
      EXPECT_EQ(built.data(), where);
    }
    where = built.data();
  }
  EXPECT_EQ(memory.taken, 2);
}

TEST(FlatMessageAllocator, LeavesMessagesAloneThatSomebodyStillHas) {
  Memory memory;
  Builder builder(memory);
  std::vector<Buffer> kept;
  for (int i = 0; i < 300; ++i) kept.push_back(builder.Build(std::to_string(i)));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(TextOf(kept[i]), std::to_string(i));
  // Many of them share a block.
  EXPECT_LT(memory.taken, 30);
  kept.clear();
  const int taken = memory.taken;
  for (int i = 0; i < 300; ++i) builder.Build(std::to_string(i));
  EXPECT_EQ(memory.taken, taken);
}

TEST(FlatMessageAllocator, GrowsAMessageWhereItIsAndThenIntoALargerBlock) {
  Memory memory;
  Builder builder(memory, 16);
  EXPECT_EQ(TextOf(builder.Build(std::string(2000, 'a'))), std::string(2000, 'a'));
  EXPECT_EQ(memory.taken, 1);
  // FlatBuffers asks for half as much again when it grows: so one for the string, and one more.
  EXPECT_EQ(TextOf(builder.Build(std::string(100'000, 'b'))), std::string(100'000, 'b'));
  EXPECT_EQ(memory.taken, 4);
}

TEST(FlatMessageAllocator, BuildsALongMessageInOneBlockWhenItIsToldHowLong) {
  Memory memory;
  Builder builder(memory, 100'200);
  EXPECT_EQ(TextOf(builder.Build(std::string(100'000, 'b'))), std::string(100'000, 'b'));
  EXPECT_EQ(memory.taken, 1);
}

TEST(FlatMessageAllocator, LeavesTheMemoryOfAnEarlierConnection) {
  Memory memory;
  Builder builder(memory);
  builder.Build("one");
  builder.Build("two");
  memory.domain_id = 2;
  EXPECT_EQ(builder.Build("three").block()->domain_id, 2u);
  memory.domain_id = 0;
  memory.error = absl::UnavailableError("no connection");
  const Buffer heap = builder.Build("four");
  EXPECT_EQ(TextOf(heap), "four");
  EXPECT_EQ(heap.block()->domain_id, 0u);
  EXPECT_EQ(heap.block()->memory, nullptr) << "it would be registered without being counted";
  memory.domain_id = 3;
  memory.error = absl::OkStatus();
  EXPECT_EQ(builder.Build("five").block()->domain_id, 3u);
}

TEST(FlatMessageAllocator, EndsMessagesWhereWideFieldsAreAligned) {
  Memory memory;
  Builder builder(memory);
  for (size_t bytes = 0; bytes < 200; ++bytes) {
    const Wide wide(1, 2, 3, 4);
    builder.Finish(flat_message_test::CreateNote(
        builder, builder.CreateString(std::string(bytes, 'x')), &wide));
    const Buffer built = builder.TakeBuilt(builder.GetBufferPointer(), builder.GetSize());
    size_t size, offset;
    builder.ReleaseRaw(size, offset);
    builder.Clear();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(flatbuffers::GetRoot<Note>(built.data())->wide()) % 32,
              0u);
  }
}

TEST(FlatMessage, IsEmptyUntilItIsBuilt) {
  FlatMessage<Note> message;
  EXPECT_TRUE(message.empty());
  EXPECT_EQ(message.GetRoot(), nullptr);
  FlatMessageBuilder builder;
  builder.CreateString("unfinished");
  EXPECT_TRUE(builder.ReleaseMessage<Note>().empty());
  // And begins anew.
  builder.Finish(flat_message_test::CreateNote(builder, builder.CreateString("finished")));
  message = builder.ReleaseMessage<Note>();
  EXPECT_EQ(message->text()->str(), "finished");
}

TEST(FlatMessage, CopiesShareTheMemory) {
  FlatMessageBuilder builder;
  builder.Finish(flat_message_test::CreateNote(builder, builder.CreateString("shared")));
  FlatMessage<Note> message = builder.ReleaseMessage<Note>();
  const FlatMessage<Note> copy = message;
  EXPECT_EQ(copy.bytes().data(), message.bytes().data());
  message = FlatMessage<Note>();
  EXPECT_EQ(copy->text()->str(), "shared");
}

TEST(FlatBuffersCodec, RefusesWhatIsTooLongForAFlatBuffer) {
  std::byte nothing{};
  EXPECT_FALSE(VerifyFlatBuffer<Note>({&nothing, size_t{1} << 31}));
  EXPECT_FALSE(VerifyFlatBuffer<Note>({&nothing, size_t{0}}));
}

TEST(FlatBuffersCodec, ParsesACopyThatOutlivesTheBytes) {
  FlatMessageBuilder builder;
  builder.Finish(flat_message_test::CreateNote(builder, builder.CreateString("copied")));
  const FlatMessage<Note> message = builder.ReleaseMessage<Note>();
  std::vector<std::byte> bytes(message.bytes().begin(), message.bytes().end());
  FlatMessage<Note> parsed;
  const Codec& codec = kFlatBuffersCodec<Note>;
  ASSERT_TRUE(codec.parse(&parsed, bytes));
  std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  EXPECT_EQ(parsed->text()->str(), "copied");
  EXPECT_FALSE(codec.parse(&parsed, bytes));
}

}  // namespace
}  // namespace verbena
