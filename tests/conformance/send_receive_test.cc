// SPDX-License-Identifier: Apache-2.0
//
// SEND and RECV: sizes, order, scatter and gather, inline data, immediates, signalling.

#include <algorithm>
#include <numeric>
#include <set>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

constexpr auto kSuccess = CompletionStatus::kSuccess;
constexpr size_t kMebibyte = size_t{1} << 20;

class SendReceive : public ConnectedPair {
 protected:
  // Sizes at which implementations change their way: empty, one byte, around the inline limit,
  // around the 112 bytes that fit beside the header of two cache lines, a page, many pages.
  std::set<size_t> InterestingSizes() {
    std::set<size_t> sizes = {0, 1, 63, 64, 65, 111, 112, 113, 4095, 4096, 4097, kMebibyte};
    const size_t inlined = can().inline_bytes_max;
    if (inlined > 0) sizes.insert({inlined - 1, inlined, inlined + 1});
    return sizes;
  }

  // Sends one message of `size` bytes and checks every byte at the receiver, and one behind it.
  void ExpectDelivery(const Buffer& from, const Buffer& to, size_t size) {
    SCOPED_TRACE(testing::Message() << size << " bytes");
    const uint32_t seed = static_cast<uint32_t>(size) + 1;
    FillPattern(from.bytes(0, size), seed);
    std::ranges::fill(to.bytes(), std::byte{0xee});
    server().PostRecv(2, {to.First(size)});
    client().Post(Send(1, {from.First(size)}));
    server().ExpectReceived(2, static_cast<uint32_t>(size));
    client().ExpectSuccess(1, CompletionOpcode::kSend);
    EXPECT_TRUE(HoldsPattern(to.bytes(0, size), seed));
    EXPECT_TRUE(HoldsOnly(to.bytes().subspan(size), 0xee)) << "behind the message";
  }
};

TEST_P(SendReceive, DeliversEverySize) {
  const Buffer& from = client().Allocate(kMebibyte);
  const Buffer& to = server().Allocate(kMebibyte + 64);
  for (size_t size : InterestingSizes()) ExpectDelivery(from, to, size);
}

TEST_P(SendReceive, SendsFromUserMemoryOfEverySize) {
  const Buffer& from = client().RegisterUserMemory(kMebibyte);
  const Buffer& to = server().Allocate(kMebibyte + 64);
  for (size_t size : InterestingSizes()) ExpectDelivery(from, to, size);
}

TEST_P(SendReceive, ReceivesIntoUserMemoryUpToTheLimit) {
  const size_t limit = std::min<uint64_t>(can().user_memory_receive_bytes_max, kMebibyte);
  ASSERT_GE(limit, 1u) << "a device that cannot receive into user memory at all";
  const Buffer& from = client().Allocate(limit);
  const Buffer& to = server().RegisterUserMemory(limit + 64);
  for (size_t size : InterestingSizes()) {
    if (size <= limit) ExpectDelivery(from, to, size);
  }
  ExpectDelivery(from, to, limit);
}

TEST_P(SendReceive, SendsFromReadOnlyMemory) {
  const Buffer& from = client().Allocate(4096, kAccessLocalRead);
  const Buffer& to = server().Allocate(8192);
  ExpectDelivery(from, to, 4096);
}

TEST_P(SendReceive, CompletionsNameTheQueuePairAndTheRequest) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  constexpr uint64_t kSendId = 0xfedcba9876543210;
  constexpr uint64_t kRecvId = 0x0123456789abcdef;
  server().PostRecv(kRecvId, {to.All()});
  client().Post(Send(kSendId, {from.First(7)}));
  EXPECT_EQ(server().ExpectSuccess(kRecvId).queue_pair_number, server().pair().number());
  EXPECT_EQ(client().ExpectSuccess(kSendId).queue_pair_number, client().pair().number());
}

TEST_P(SendReceive, DeliversInOrder) {
  constexpr uint64_t kCount = 50;
  constexpr size_t kStride = 2048;
  const Buffer& from = client().Allocate(kCount * kStride);
  const Buffer& to = server().Allocate(kCount * kStride);
  for (uint64_t i = 0; i < kCount; ++i) {
    server().PostRecv(100 + i, {to.Piece(i * kStride, kStride)});
  }
  // Small and large by turns, so that one must not overtake the other.
  const auto size_of = [](uint64_t i) { return i % 2 == 0 ? 8 + i : kStride - i; };
  for (uint64_t i = 0; i < kCount; ++i) {
    FillPattern(from.bytes(i * kStride, kStride), static_cast<uint32_t>(i));
    client().Post(Send(i, {from.Piece(i * kStride, size_of(i))}));
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    server().ExpectReceived(100 + i, static_cast<uint32_t>(size_of(i)));
    client().ExpectSuccess(i);
    EXPECT_TRUE(HoldsPattern(to.bytes(i * kStride, size_of(i)), static_cast<uint32_t>(i)));
  }
}

TEST_P(SendReceive, WorksInBothDirectionsAtOnce) {
  constexpr uint64_t kSendId = 1000;
  const Buffer& ours = client().Allocate(8192);
  const Buffer& theirs = server().Allocate(8192);
  // Receives and sends of one pair have no order among each other.
  const auto expect_received = [](Party& party, uint64_t id, uint32_t byte_length) {
    WorkCompletion completion = party.ExpectStatus(kSuccess);
    while (completion.wr_id == kSendId) completion = party.ExpectStatus(kSuccess);
    EXPECT_EQ(completion.wr_id, id);
    EXPECT_EQ(completion.byte_length, byte_length);
  };
  for (uint32_t round = 0; round < 200; ++round) {
    client().PostRecv(1, {ours.Piece(4096, 4096)});
    server().PostRecv(2, {theirs.Piece(4096, 4096)});
    FillPattern(ours.bytes(0, 100), 2 * round);
    FillPattern(theirs.bytes(0, 200), 2 * round + 1);
    client().Post(Send(kSendId, {ours.First(100)}));
    server().Post(Send(kSendId, {theirs.First(200)}));
    expect_received(client(), 1, 200);
    expect_received(server(), 2, 100);
    ASSERT_TRUE(HoldsPattern(ours.bytes(4096, 200), 2 * round + 1)) << round;
    ASSERT_TRUE(HoldsPattern(theirs.bytes(4096, 100), 2 * round)) << round;
  }
}

TEST_P(SendReceive, UsesReceivesInTheOrderTheyWerePosted) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(4096);
  // The size of a receive does not make it fit better: the first is used first.
  server().PostRecv(1, {to.Piece(0, 2048)});
  server().PostRecv(2, {to.Piece(2048, 64)});
  client().Post(Send(1, {from.First(10)}));
  client().Post(Send(2, {from.First(20)}));
  server().ExpectReceived(1, 10);
  server().ExpectReceived(2, 20);
}

TEST_P(SendReceive, GathersAndScattersUnevenPieces) {
  const size_t send_pieces = std::min(can().send_sge_max, 4u);
  const size_t recv_pieces = std::min(can().recv_sge_max, 4u);
  for (size_t total : {100u, 5000u, 200000u}) {
    SCOPED_TRACE(total);
    const Buffer& from = client().Allocate(total + 4096);
    const Buffer& to = server().Allocate(total + 4096);
    std::ranges::fill(to.bytes(), std::byte{0xee});
    // Pieces with gaps between them; the last takes the rest. A seventh and a fifth never align.
    const auto cut = [total](const Buffer& buffer, size_t count, size_t length) {
      Pieces pieces;
      for (size_t i = 0; i + 1 < count; ++i) {
        pieces.push_back(buffer.Piece(i * (length + 3), length));
      }
      const size_t used = (count - 1) * length;
      pieces.push_back(buffer.Piece((count - 1) * (length + 3), total - used));
      return pieces;
    };
    const Pieces gather = cut(from, send_pieces, total / 7);
    const Pieces scatter = cut(to, recv_pieces, total / 5);
    size_t index = 0;
    for (const ScatterGatherEntry& piece : gather) {
      for (size_t i = 0; i < piece.length; ++i) {
        reinterpret_cast<std::byte*>(piece.address)[i] = PatternByte(9, index++);
      }
    }
    server().PostRecv(2, scatter);
    client().Post(Send(1, gather));
    server().ExpectReceived(2, static_cast<uint32_t>(total));
    client().ExpectSuccess(1);
    index = 0;
    size_t wrong = 0;
    for (const ScatterGatherEntry& piece : scatter) {
      const std::byte* bytes = reinterpret_cast<const std::byte*>(piece.address);
      for (size_t i = 0; i < piece.length; ++i) wrong += bytes[i] != PatternByte(9, index++);
    }
    EXPECT_EQ(wrong, 0u);
    if (recv_pieces > 1) {
      EXPECT_TRUE(HoldsOnly(to.bytes(total / 5, 3), 0xee)) << "between the pieces";
    }
  }
}

TEST_P(SendReceive, ShortMessageLeavesTheLaterPiecesAlone) {
  if (can().recv_sge_max < 2) GTEST_SKIP() << "one scatter entry only";
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(256);
  std::ranges::fill(to.bytes(), std::byte{0xee});
  FillPattern(from.bytes(), 3);
  server().PostRecv(2, {to.Piece(0, 16), to.Piece(128, 64)});
  client().Post(Send(1, {from.First(20)}));
  server().ExpectReceived(2, 20);
  EXPECT_TRUE(HoldsPattern(to.bytes(0, 16), 3));
  EXPECT_TRUE(HoldsOnly(to.bytes(16, 112), 0xee));
  EXPECT_TRUE(HoldsOnly(to.bytes(132, 124), 0xee));
}

TEST_P(SendReceive, EmptyMessageNeedsNoPieces) {
  server().PostRecv(2, {});
  client().Post(Send(1, {}));
  server().ExpectReceived(2, 0);
  client().ExpectSuccess(1, CompletionOpcode::kSend);
}

TEST_P(SendReceive, InlineFreesTheBufferAtOnce) {
  const size_t limit = can().inline_bytes_max;
  if (limit == 0) GTEST_SKIP() << "no inline sends";
  const Buffer& to = server().Allocate(limit * 8);
  // Neither registered nor alive when the message is received.
  for (uint64_t i = 0; i < 8; ++i) {
    server().PostRecv(10 + i, {to.Piece(i * limit, limit)});
    std::vector<std::byte> bytes(limit);
    FillPattern(bytes, static_cast<uint32_t>(i));
    const ScatterGatherEntry piece = {reinterpret_cast<uint64_t>(bytes.data()),
                                      static_cast<uint32_t>(limit), LocalKey{}};
    client().Post(Send(i, {piece}).Inline());
    std::ranges::fill(bytes, std::byte{0});
  }
  for (uint64_t i = 0; i < 8; ++i) {
    server().ExpectReceived(10 + i, static_cast<uint32_t>(limit));
    client().ExpectSuccess(i);
    EXPECT_TRUE(HoldsPattern(to.bytes(i * limit, limit), static_cast<uint32_t>(i)));
  }
}

TEST_P(SendReceive, InlineGathersPieces) {
  if (can().inline_bytes_max < 2 || can().send_sge_max < 2) GTEST_SKIP() << "one piece only";
  const Buffer& to = server().Allocate(64);
  server().PostRecv(2, {to.All()});
  const char left[] = {'v'};
  const char right[] = {'b'};
  client().Post(Send(1, {{reinterpret_cast<uint64_t>(left), 1, {}},
                         {reinterpret_cast<uint64_t>(right), 1, {}}})
                    .Inline());
  server().ExpectReceived(2, 2);
  EXPECT_EQ(to.bytes()[0], std::byte{'v'});
  EXPECT_EQ(to.bytes()[1], std::byte{'b'});
}

TEST_P(SendReceive, InlineOverTheLimitIsRefused) {
  const Buffer& from = client().Allocate(can().inline_bytes_max + 4096);
  const Buffer& to = server().Allocate(can().inline_bytes_max + 4096);
  size_t accepted = 7;
  EXPECT_THAT(
      client().TryPost({Send(1, {from.First(can().inline_bytes_max + 1)}).Inline()}, &accepted),
      HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(accepted, 0u);
  // The pair works on.
  ExpectDelivery(from, to, 100);
}

TEST_P(SendReceive, CarriesAnImmediate) {
  REQUIRE_CAPABILITY(send_with_imm);
  const Buffer& from = client().Allocate(512);
  const Buffer& to = server().Allocate(512);
  FillPattern(from.bytes(), 5);
  for (size_t size : {0u, 1u, 112u, 500u}) {
    server().PostRecv(2, {to.All()});
    client().Post(SendWithImm(1, {from.First(size)}, 0x01020304));
    const WorkCompletion completion = server().ExpectSuccess(2, CompletionOpcode::kRecv);
    EXPECT_EQ(completion.flags, kCompletionWithImm);
    EXPECT_EQ(completion.imm_data, 0x01020304u);
    EXPECT_EQ(completion.byte_length, size);
    client().ExpectSuccess(1, CompletionOpcode::kSend);
    EXPECT_TRUE(HoldsPattern(to.bytes(0, size), 5));
  }
}

TEST_P(SendReceive, OnlySignalledSendsComplete) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t i = 0; i < 5; ++i) server().PostRecv(10 + i, {to.All()});
  client().Post({Send(1, {from.First(4)}).Unsignaled(), Send(2, {from.First(4)}).Unsignaled(),
                 Send(3, {from.First(4)}), Send(4, {from.First(4)}).Unsignaled(),
                 Send(5, {from.First(4)})});
  client().ExpectSuccess(3);
  client().ExpectSuccess(5);
  for (uint64_t i = 0; i < 5; ++i) server().ExpectReceived(10 + i, 4);
  client().ExpectNoCompletion();
}

TEST_P(SendReceive, CountsMessages) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t i = 0; i < 3; ++i) {
    server().PostRecv(10 + i, {to.All()});
    client().Post(Send(i, {from.First(4)}));
    client().ExpectSuccess(i);
    server().ExpectReceived(10 + i, 4);
  }
  EXPECT_EQ(client().pair().counters().messages_sent, 3u);
  EXPECT_EQ(client().pair().counters().messages_received, 0u);
  EXPECT_EQ(server().pair().counters().messages_received, 3u);
  EXPECT_EQ(client().pair().counters().receiver_not_ready, 0u);
}

TEST_P(SendReceive, PollGivesNoMoreThanItIsAskedFor) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t i = 0; i < 5; ++i) {
    server().PostRecv(10 + i, {to.All()});
    client().Post(Send(i, {from.First(4)}).Unsignaled());
  }
  server().PostRecv(15, {to.All()});
  client().Post(Send(5, {from.First(4)}));
  client().ExpectSuccess(5);
  EXPECT_EQ(client().queue().Poll({}), 0u);
  // Small batches, and what is behind the count is untouched.
  std::vector<uint64_t> seen;
  WorkCompletion batch[4] = {};
  batch[2].wr_id = 77;
  ASSERT_TRUE(loop().RunUntil([&] { return server().has_completion(); }));
  uint64_t expected = 10;
  server().ExpectReceived(expected++, 4);
  while (server().has_completion()) server().ExpectReceived(expected++, 4);
  loop().RunUntil([&] {
    const size_t count = server().queue().Poll(std::span(batch, 2));
    EXPECT_LE(count, 2u);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(batch[i].wr_id, expected++);
    while (server().has_completion()) server().ExpectReceived(expected++, 4);
    return expected == 16;
  });
  EXPECT_EQ(expected, 16u);
  EXPECT_EQ(batch[2].wr_id, 77u);
}

class SignalAll : public TwoParties {};

TEST_P(SignalAll, EverySendCompletes) {
  PairOptions options = Defaults();
  options.client_pair.signal_all = true;
  Connect(options);
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t i = 0; i < 3; ++i) {
    server().PostRecv(10 + i, {to.All()});
    client().Post(Send(i, {from.First(4)}).Unsignaled());
  }
  for (uint64_t i = 0; i < 3; ++i) client().ExpectSuccess(i, CompletionOpcode::kSend);
}

VERBENA_CONFORMANCE(SendReceive);
VERBENA_CONFORMANCE(SignalAll);

}  // namespace
}  // namespace verbena::conformance
