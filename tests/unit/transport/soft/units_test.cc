// SPDX-License-Identifier: Apache-2.0
//
// The small parts: layouts, keys, copies, sealed memory.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "verbena/tests/support/must.h"
#include "verbena/transport/soft/copy_small.h"
#include "verbena/transport/soft/key_table.h"
#include "verbena/transport/soft/segment.h"
#include "verbena/transport/soft/shared_memory.h"
#include "verbena/transport/soft/wire.h"

namespace verbena::soft {
namespace {

// Changing any of these needs a new kWireVersion.
TEST(Segment, LayoutIsFixed) {
  const SegmentLayout layout(128);
  EXPECT_EQ(layout.completions_offset, 4096u);
  EXPECT_EQ(layout.receives_offset, 4096u + 128 * 128);
  EXPECT_EQ(layout.staging_offset, 4096u + 128 * 128 + 128 * 64);
  EXPECT_EQ(layout.bytes, 4096u + 128 * 128 + 128 * 64 + 128 * 65536);
  EXPECT_EQ(offsetof(ControlPage, receive_tail), 0u);
  EXPECT_EQ(offsetof(ControlPage, wake), 128u);
  EXPECT_EQ(offsetof(ControlPage, executing), 256u);
  EXPECT_EQ(offsetof(KeyEntry, address), 16u);
  EXPECT_EQ(kWireVersion, 1);
}

TEST(Segment, StagingOfFewSlotsBeginsAtAPage) {
  for (uint32_t slots : {1, 2, 16, 64}) {
    EXPECT_EQ(SegmentLayout(slots).staging_offset % kPageBytes, 0u) << slots;
  }
}

TEST(Segment, OnlyPowersOfTwoUpToTheLimitAreSlots) {
  EXPECT_TRUE(SegmentLayout::IsValid(1));
  EXPECT_TRUE(SegmentLayout::IsValid(kQueueDepthMax));
  for (uint32_t slots : {0u, 3u, kQueueDepthMax + 1, 2 * kQueueDepthMax, ~0u}) {
    EXPECT_FALSE(SegmentLayout::IsValid(slots)) << slots;
  }
}

TEST(CopySmall, CopiesEveryLengthAndNothingMore) {
  std::array<std::byte, kEntryPayloadBytes + 32> from;
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  for (uint32_t bytes = 0; bytes <= kEntryPayloadBytes; ++bytes) {
    for (size_t shift : {0, 1, 7}) {
      std::array<std::byte, kEntryPayloadBytes + 32> to{};
      CopySmall(to.data() + shift, from.data() + shift, bytes);
      for (size_t i = 0; i < to.size(); ++i) {
        const bool inside = i >= shift && i < shift + bytes;
        ASSERT_EQ(to[i], inside ? from[i] : std::byte{0}) << bytes << " bytes, byte " << i;
      }
    }
  }
}

constexpr KeyGrant kGrant{.access = kAccessRemoteRead,
                          .region = 1 << 8,
                          .queue_pair = 3,
                          .address = 4096,
                          .length = 100,
                          .offset = 0};

TEST(KeyTable, OpensAndClosesARemoteKey) {
  const auto table = Must(KeyTable::Create());
  const uint32_t key = table->Allocate();
  KeyGrant grant;
  EXPECT_FALSE(table->ReadRemote(key, &grant));
  table->OpenRemote(key, kGrant);
  ASSERT_TRUE(table->ReadRemote(key, &grant));
  EXPECT_EQ(grant.queue_pair, 3u);
  EXPECT_FALSE(table->ReadRemote(key + 1, &grant));
  EXPECT_FALSE(table->ReadRemote(key | kLocalKeyBit, &grant));
  table->CloseRemote(key);
  EXPECT_FALSE(table->ReadRemote(key, &grant));
}

TEST(KeyTable, AKeyThatIsUsedAgainIsAnotherKey) {
  const auto table = Must(KeyTable::Create());
  const uint32_t first = table->Allocate();
  table->OpenLocal(first, kAccessLocalWrite, 4096, 8192, 0);
  table->Free(first);
  const uint32_t second = table->Allocate();
  EXPECT_EQ(IndexOfKey(first), IndexOfKey(second));
  EXPECT_NE(first, second);
  table->OpenLocal(second, kAccessLocalWrite, 4096, 8192, 0);
  EXPECT_EQ(table->Find(LocalKey{first | kLocalKeyBit}, 4096, 1, 0), nullptr);
  EXPECT_NE(table->Find(LocalKey{second | kLocalKeyBit}, 4096, 1, 0), nullptr);
}

TEST(KeyTable, FindChecksBoundsWithoutOverflowAndRights) {
  const auto table = Must(KeyTable::Create());
  const uint32_t key = table->Allocate();
  table->OpenLocal(key, kAccessLocalRead, 4096, 8192, 0);
  const LocalKey local{key | kLocalKeyBit};
  EXPECT_NE(table->Find(local, 4096, 4096, kAccessLocalRead), nullptr);
  EXPECT_NE(table->Find(local, 8191, 1, kAccessLocalRead), nullptr);
  EXPECT_EQ(table->Find(local, 4095, 1, kAccessLocalRead), nullptr);
  EXPECT_EQ(table->Find(local, 8191, 2, kAccessLocalRead), nullptr);
  EXPECT_EQ(table->Find(local, ~uint64_t{0}, 1, kAccessLocalRead), nullptr);
  EXPECT_EQ(table->Find(local, 4096, ~0u, kAccessLocalRead), nullptr);
  EXPECT_EQ(table->Find(local, 4096, 1, kAccessLocalWrite), nullptr);
  EXPECT_EQ(table->Find(LocalKey{key}, 4096, 1, kAccessLocalRead), nullptr) << "a remote key";
  EXPECT_EQ(table->Find(LocalKey{0}, 0, 1, kAccessLocalRead), nullptr);
}

TEST(KeyTable, PeersCanMapItForReadingOnly) {
  const auto table = Must(KeyTable::Create());
  EXPECT_TRUE(Mapping::Shared(table->fd(), KeyTable::kBytes, /*writable=*/false).ok());
  EXPECT_FALSE(Mapping::Shared(table->fd(), KeyTable::kBytes, /*writable=*/true).ok());
}

TEST(KeyTable, SaysWhenItIsFull) {
  const auto table = Must(KeyTable::Create());
  for (uint32_t i = 1; i < kKeysMax; ++i) ASSERT_NE(table->Allocate(), 0u) << i;
  EXPECT_EQ(table->Allocate(), 0u);
}

TEST(SealedMemory, CanNeitherShrinkNorGrow) {
  const SealedMemory memory = Must(CreateSealedMemory("test", 8192, /*peers_may_write=*/true));
  EXPECT_TRUE(CheckSealedMemory(memory.fd.get(), 8192).ok());
  EXPECT_FALSE(CheckSealedMemory(memory.fd.get(), 8193).ok());
  EXPECT_NE(ftruncate(memory.fd.get(), 4096), 0);
  EXPECT_NE(ftruncate(memory.fd.get(), 16384), 0);
}

TEST(SealedMemory, OtherFilesAreRefused) {
  UniqueFd file(open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(CheckSealedMemory(file.get(), 1).ok());
  UniqueFd unsealed(memfd_create("test", MFD_CLOEXEC));
  EXPECT_FALSE(CheckSealedMemory(unsealed.get(), 0).ok());
}

TEST(Events, OnlyAnonymousDescriptorsPass) {
  const UniqueFd event = Must(CreateEvent());
  EXPECT_TRUE(CheckEvent(event.get()).ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  EXPECT_FALSE(CheckEvent(write_end.get()).ok());
}

TEST(Wire, MessageThatIsNotWellFormedIsRefused) {
  ControlMessage message;
  message.type = MessageType::kRequest;
  EXPECT_TRUE(IsWellFormed(message, 0));
  EXPECT_FALSE(IsWellFormed(message, 1)) << "a descriptor too many";
  message.private_data_bytes = 57;
  EXPECT_FALSE(IsWellFormed(message, 0));
  message.private_data_bytes = 56;
  message.receiver_not_ready_timer = 32;
  EXPECT_FALSE(IsWellFormed(message, 0));
  message.receiver_not_ready_timer = 31;
  message.type = static_cast<MessageType>(9);
  EXPECT_FALSE(IsWellFormed(message, 0));
  message.type = MessageType::kRequest;
  message.magic ^= 1;
  EXPECT_FALSE(IsWellFormed(message, 0));
}

}  // namespace
}  // namespace verbena::soft
