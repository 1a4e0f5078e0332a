// SPDX-License-Identifier: Apache-2.0
//
// WRITE, WRITE_WITH_IMM and READ: sizes, what the peer sees of them, order and fence.

#include <algorithm>
#include <atomic>
#include <set>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

class OneSided : public ConnectedPair {
 protected:
  std::set<size_t> InterestingSizes() {
    std::set<size_t> sizes = {1, 7, 8, 63, 64, 65, 111, 112, 113, 4095, 4096, 4097, kMebibyte};
    const size_t inlined = can().inline_bytes_max;
    if (inlined > 1) sizes.insert({inlined - 1, inlined, inlined + 1});
    return sizes;
  }
};

TEST_P(OneSided, WritesEverySizeAndNothingAround) {
  const Buffer& from = client().Allocate(kMebibyte);
  const Buffer& to = server().Allocate(kMebibyte + 128);
  for (size_t size : InterestingSizes()) {
    SCOPED_TRACE(size);
    FillPattern(from.bytes(0, size), static_cast<uint32_t>(size));
    std::ranges::fill(to.bytes(), std::byte{0xee});
    client().Post(Write(1, {from.First(size)}, to.At(61)));
    client().ExpectSuccess(1, CompletionOpcode::kWrite);
    EXPECT_TRUE(HoldsOnly(to.bytes(0, 61), 0xee)) << "before";
    EXPECT_TRUE(HoldsPattern(to.bytes(61, size), static_cast<uint32_t>(size)));
    EXPECT_TRUE(HoldsOnly(to.bytes().subspan(61 + size), 0xee)) << "behind";
  }
  server().ExpectNoCompletion();
}

TEST_P(OneSided, WriteConsumesNoReceive) {
  const Buffer& from = client().Allocate(4096);
  const Buffer& to = server().Allocate(4096);
  server().PostRecv(9, {to.All()});
  client().Post(Write(1, {from.First(100)}, to.Start()));
  client().ExpectSuccess(1);
  server().ExpectNoCompletion();
  client().Post(Send(2, {from.First(3)}));
  server().ExpectReceived(9, 3);
}

TEST_P(OneSided, WriteGathersPieces) {
  if (can().send_sge_max < 2) GTEST_SKIP() << "one gather entry only";
  const Buffer& from = client().Allocate(4096);
  const Buffer& to = server().Allocate(4096);
  FillPattern(from.bytes(100, 30), 1);
  FillPattern(from.bytes(1000, 2000), 2);
  client().Post(Write(1, {from.Piece(100, 30), from.Piece(1000, 2000)}, to.At(5)));
  client().ExpectSuccess(1);
  EXPECT_TRUE(HoldsPattern(to.bytes(5, 30), 1));
  EXPECT_TRUE(HoldsPattern(to.bytes(35, 2000), 2));
}

TEST_P(OneSided, WriteInlineFreesTheBufferAtOnce) {
  const size_t limit = std::min(can().inline_bytes_max, 64u);
  if (limit == 0) GTEST_SKIP() << "no inline sends";
  const Buffer& to = server().Allocate(4096);
  std::vector<std::byte> bytes(limit);
  FillPattern(bytes, 4);
  client().Post(
      Write(1,
            {{reinterpret_cast<uint64_t>(bytes.data()), static_cast<uint32_t>(limit), LocalKey{}}},
            to.Start())
          .Inline());
  std::ranges::fill(bytes, std::byte{0});
  client().ExpectSuccess(1);
  EXPECT_TRUE(HoldsPattern(to.bytes(0, limit), 4));
}

TEST_P(OneSided, ReadsEverySizeAndReportsTheBytes) {
  const Buffer& into = client().Allocate(kMebibyte + 128);
  const Buffer& from = server().Allocate(kMebibyte + 128);
  for (size_t size : InterestingSizes()) {
    SCOPED_TRACE(size);
    FillPattern(from.bytes(61, size), static_cast<uint32_t>(size));
    std::ranges::fill(into.bytes(), std::byte{0xee});
    client().Post(Read(1, {into.Piece(3, size)}, from.At(61)));
    EXPECT_EQ(client().ExpectSuccess(1, CompletionOpcode::kRead).byte_length, size);
    EXPECT_TRUE(HoldsOnly(into.bytes(0, 3), 0xee)) << "before";
    EXPECT_TRUE(HoldsPattern(into.bytes(3, size), static_cast<uint32_t>(size)));
    EXPECT_TRUE(HoldsOnly(into.bytes().subspan(3 + size), 0xee)) << "behind";
  }
  server().ExpectNoCompletion();
}

TEST_P(OneSided, ReadsIntoUserMemory) {
  const Buffer& into = client().RegisterUserMemory(kMebibyte);
  const Buffer& from = server().Allocate(kMebibyte);
  FillPattern(from.bytes(), 8);
  client().Post(Read(1, {into.All()}, from.Start()));
  client().ExpectSuccess(1);
  EXPECT_TRUE(HoldsPattern(into.bytes(), 8));
}

TEST_P(OneSided, WritesFromUserMemory) {
  const Buffer& from = client().RegisterUserMemory(kMebibyte);
  const Buffer& to = server().Allocate(kMebibyte);
  FillPattern(from.bytes(), 8);
  client().Post(Write(1, {from.All()}, to.Start()));
  client().ExpectSuccess(1);
  EXPECT_TRUE(HoldsPattern(to.bytes(), 8));
}

TEST_P(OneSided, ReadScattersPieces) {
  if (can().read_sge_max < 2) GTEST_SKIP() << "one scatter entry only";
  const Buffer& into = client().Allocate(4096);
  const Buffer& from = server().Allocate(4096);
  FillPattern(from.bytes(0, 30), 1);
  FillPattern(from.bytes(30, 2000), 2);
  client().Post(Read(1, {into.Piece(100, 30), into.Piece(1000, 2000)}, from.Start()));
  EXPECT_EQ(client().ExpectSuccess(1).byte_length, 2030u);
  EXPECT_TRUE(HoldsPattern(into.bytes(100, 30), 1));
  EXPECT_TRUE(HoldsPattern(into.bytes(1000, 2000), 2));
}

// InfiniBand specification vol. 1, C9-88: the key of an empty READ or WRITE is not checked.
TEST_P(OneSided, EmptyAccessNeedsNoKey) {
  client().Post(Write(1, {}, RemoteTarget{}));
  client().ExpectSuccess(1, CompletionOpcode::kWrite);
  client().Post(Read(2, {}, RemoteTarget{}));
  EXPECT_EQ(client().ExpectSuccess(2, CompletionOpcode::kRead).byte_length, 0u);
  if (!can().write_with_imm) return;
  server().PostRecv(9, {});
  client().Post(WriteWithImm(3, {}, RemoteTarget{}, 5));
  client().ExpectSuccess(3, CompletionOpcode::kWrite);
  const WorkCompletion completion = server().ExpectSuccess(9, CompletionOpcode::kRecvWriteWithImm);
  EXPECT_EQ(completion.byte_length, 0u);
  EXPECT_EQ(completion.imm_data, 5u);
}

TEST_P(OneSided, EmptyReadsGoOnForEver) {
  for (uint64_t round = 0; round < 300; ++round) {
    client().Post(Read(round, {}, RemoteTarget{}));
    client().ExpectSuccess(round, CompletionOpcode::kRead);
    if (HasFailure()) return;
  }
}

// Around the send queue several times, so that each kind follows each other in every place of it.
TEST_P(OneSided, ReadsMixWithSendsAndWrites) {
  const Buffer& ours = client().Allocate(4096);
  const Buffer& theirs = server().Allocate(4096);
  FillPattern(theirs.bytes(0, 8), 7);
  for (const size_t read_bytes : {8, 0}) {
    const Pieces into = read_bytes == 0 ? Pieces{} : Pieces{ours.First(read_bytes)};
    for (uint64_t round = 0; round < 100; ++round) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", READ of " << read_bytes);
      server().PostRecv(9, {theirs.Piece(1024, 64)});
      client().Post({Write(1, {ours.Piece(64, 8)}, theirs.At(512)).Unsignaled(),
                     Send(2, {ours.Piece(128, 8)}),
                     Read(3, into, read_bytes == 0 ? RemoteTarget{} : theirs.Start())});
      server().ExpectReceived(9, 8);
      client().ExpectSuccess(2);
      client().ExpectSuccess(3, CompletionOpcode::kRead);
      if (HasFailure()) return;
    }
  }
  EXPECT_TRUE(HoldsPattern(ours.bytes(0, 8), 7));
}

TEST_P(OneSided, WriteWithImmConsumesAReceiveAndReportsTheBytesWritten) {
  REQUIRE_CAPABILITY(write_with_imm);
  const Buffer& from = client().Allocate(kMebibyte);
  const Buffer& to = server().Allocate(kMebibyte);
  const Buffer& receive = server().Allocate(64);
  for (size_t size : {size_t{1}, size_t{12}, size_t{112}, size_t{4096}, kMebibyte}) {
    SCOPED_TRACE(size);
    std::ranges::fill(receive.bytes(), std::byte{0xee});
    FillPattern(from.bytes(0, size), static_cast<uint32_t>(size));
    server().PostRecv(9, {receive.All()});  // Shorter than most of what is written: no matter.
    client().Post(WriteWithImm(1, {from.First(size)}, to.Start(), 0xa1b2c3d4));
    const WorkCompletion completion =
        server().ExpectSuccess(9, CompletionOpcode::kRecvWriteWithImm);
    EXPECT_EQ(completion.flags, kCompletionWithImm);
    EXPECT_EQ(completion.imm_data, 0xa1b2c3d4u);
    EXPECT_EQ(completion.byte_length, size);
    EXPECT_EQ(completion.queue_pair_number, server().pair().number());
    EXPECT_TRUE(HoldsPattern(to.bytes(0, size), static_cast<uint32_t>(size)));
    EXPECT_TRUE(HoldsOnly(receive.bytes(), 0xee)) << "the receive's own memory";
    client().ExpectSuccess(1, CompletionOpcode::kWrite);
  }
}

TEST_P(OneSided, SendTellsThatTheWriteBeforeItHasLanded) {
  const Buffer& from = client().Allocate(65536);
  const Buffer& to = server().Allocate(65536);
  for (uint32_t round = 0; round < 300; ++round) {
    const size_t size = 1 + (round * 977) % 65536;
    FillPattern(from.bytes(0, size), round);
    server().PostRecv(9, {});
    client().Post({Write(1, {from.First(size)}, to.Start()).Unsignaled(), Send(2, {})});
    server().ExpectReceived(9, 0);
    ASSERT_TRUE(HoldsPattern(to.bytes(0, size), round)) << "round " << round;
    client().ExpectSuccess(2);
  }
}

TEST_P(OneSided, LaterWriteWins) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint32_t round = 0; round < 50; ++round) {
    std::vector<Request> writes;
    for (uint32_t i = 0; i < 8; ++i) {
      from.word(8 * i) = round * 8 + i;
      writes.push_back(Write(i, {from.Piece(8 * i, 8)}, to.Start()));
      if (i < 7) writes.back().Unsignaled();
    }
    client().Post(writes);
    client().ExpectSuccess(7);
    ASSERT_EQ(to.word(), round * 8 + 7);
  }
}

TEST_P(OneSided, ReadSeesTheWriteBeforeIt) {
  const Buffer& ours = client().Allocate(16384);
  const Buffer& theirs = server().Allocate(8192);
  for (uint32_t round = 0; round < 50; ++round) {
    FillPattern(ours.bytes(0, 5000), round);
    client().Post({Write(1, {ours.First(5000)}, theirs.Start()).Unsignaled(),
                   Read(2, {ours.Piece(8192, 5000)}, theirs.Start())});
    client().ExpectSuccess(2);
    ASSERT_TRUE(HoldsPattern(ours.bytes(8192, 5000), round));
  }
}

TEST_P(OneSided, FenceWaitsForTheReadBeforeIt) {
  const Buffer& ours = client().Allocate(8192);
  const Buffer& theirs = server().Allocate(16384);
  for (uint32_t round = 0; round < 50; ++round) {
    FillPattern(theirs.bytes(0, 8192), round);
    server().PostRecv(9, {theirs.Piece(8192, 8192)});
    client().Post(
        {Read(1, {ours.All()}, theirs.Start()).Unsignaled(), Send(2, {ours.All()}).Fenced()});
    client().ExpectSuccess(2);
    server().ExpectReceived(9, 8192);
    ASSERT_TRUE(HoldsPattern(theirs.bytes(8192, 8192), round));
  }
}

// The peer's processor has no part in a one-sided operation: nobody polls its queues here.
TEST_P(OneSided, NeedsNothingOfThePeersThread) {
  const Buffer& ours = client().Allocate(kMebibyte);
  const Buffer& theirs = server().Allocate(kMebibyte);
  FillPattern(ours.bytes(), 6);
  Loop alone(subject());
  client().MoveTo(alone);
  client().Post(Write(1, {ours.All()}, theirs.Start()));
  client().ExpectSuccess(1);
  std::ranges::fill(ours.bytes(), std::byte{0});
  client().Post(Read(2, {ours.All()}, theirs.Start()));
  client().ExpectSuccess(2);
  EXPECT_TRUE(HoldsPattern(ours.bytes(), 6));
  client().MoveTo(loop());
}

TEST_P(OneSided, ReachesEveryByteOfARegionAndItsEdges) {
  const Buffer& from = client().Allocate(16);
  const Buffer& to = server().Allocate(10000);
  FillPattern(from.bytes(), 2);
  client().Post(Write(1, {from.First(16)}, to.At(10000 - 16)));
  client().ExpectSuccess(1);
  EXPECT_TRUE(HoldsPattern(to.bytes(10000 - 16, 16), 2));
  client().Post(Read(2, {from.First(1)}, to.At(9999)));
  client().ExpectSuccess(2);
  EXPECT_EQ(from.bytes()[0], PatternByte(2, 15));
}

TEST_P(OneSided, WorksInUserMemoryWhereTheDeviceSaysSo) {
  REQUIRE_CAPABILITY(remote_access_to_user_memory);
  const Buffer& from = client().Allocate(8192);
  const Buffer& to = server().RegisterUserMemory(8192, kAccessReadWrite);
  FillPattern(from.bytes(), 2);
  client().Post(Write(1, {from.All()}, to.Start()));
  client().ExpectSuccess(1);
  EXPECT_TRUE(HoldsPattern(to.bytes(), 2));
}

VERBENA_CONFORMANCE(OneSided);

}  // namespace
}  // namespace verbena::conformance
