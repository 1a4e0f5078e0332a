// SPDX-License-Identifier: Apache-2.0
//
// Errors in a work request's own memory, found by the device that was given it: bad local keys,
// bounds and rights, messages longer than the receive.

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;

class LocalErrors : public ConnectedPair {
 protected:
  // The request is accepted, fails, and nothing of it reaches the peer.
  void ExpectLocalProtectionError(const Request& request) {
    server().PostRecv(9, {server().Allocate(8192).All()});
    client().Post(request);
    client().ExpectCompletion(request.work().wr_id, Status::kLocalProtectionError);
    client().ExpectState(QueuePairState::kError);
    ExpectNothingReachesServer();
  }
  // Where a request that fails ends the connection, the server's receive is flushed.
  void ExpectNothingReachesServer() {
    if (can().error_tells_sender) {
      server().ExpectNoCompletion();
    } else {
      server().ExpectFlushed({9});
    }
  }
  // The message is sent, and the receive `id` of the server cannot take it. InfiniBand
  // specification vol. 1, 9.9.3: the responder answers an error of its own receive with a NAK
  // "remote operational error".
  void ExpectReceiveFails(Pieces into) {
    const Buffer& from = client().Allocate(64);
    server().PostRecv(9, std::move(into));
    server().PostRecv(10, {});
    client().Post({Send(1, {from.First(64)}), Send(2, {from.First(1)})});
    client().ExpectRefusedByPeer(1, Status::kRemoteOperationError, {2});
    server().ExpectCompletion(9, Status::kLocalProtectionError);
    server().ExpectFlushed({10});
    server().ExpectState(QueuePairState::kError);
  }
};

TEST_P(LocalErrors, SendWithAKeyThatWasNeverGiven) {
  ScatterGatherEntry piece = client().Allocate(4096).First(100);
  piece.local_key.value ^= 0x5a5a5a00;
  ExpectLocalProtectionError(Send(1, {piece}));
}

TEST_P(LocalErrors, SendFromBehindTheRegion) {
  const Buffer& from = client().Allocate(4096);
  ExpectLocalProtectionError(Send(1, {from.Piece(4000, 97)}));
}

TEST_P(LocalErrors, SendFromBeforeTheRegion) {
  ScatterGatherEntry piece = client().Allocate(4096).First(100);
  piece.address -= 1;
  ExpectLocalProtectionError(Send(1, {piece}));
}

TEST_P(LocalErrors, SendFromAnAddressThatWrapsAround) {
  ScatterGatherEntry piece = client().Allocate(4096).First(100);
  piece.address = ~uint64_t{0} - 10;
  ExpectLocalProtectionError(Send(1, {piece}));
}

TEST_P(LocalErrors, SendWithASecondPieceOutOfBounds) {
  if (can().send_sge_max < 2) GTEST_SKIP() << "one gather entry only";
  const Buffer& from = client().Allocate(4096);
  ExpectLocalProtectionError(Send(1, {from.First(10), from.Piece(4090, 10)}));
}

TEST_P(LocalErrors, LargeSendOutOfBounds) {
  const Buffer& from = client().Allocate(65536);
  ExpectLocalProtectionError(Send(1, {from.Piece(65536 - 7000, 7001)}));
}

TEST_P(LocalErrors, SendFromAnotherDomain) {
  const Buffer& foreign = server().Allocate(4096);
  ExpectLocalProtectionError(Send(1, {foreign.First(100)}));
}

TEST_P(LocalErrors, SendFromADeregisteredRegion) {
  Buffer& from = client().Allocate(4096);
  const ScatterGatherEntry piece = from.First(100);
  from.Deregister();
  ExpectLocalProtectionError(Send(1, {piece}));
}

TEST_P(LocalErrors, WriteWithAKeyThatWasNeverGiven) {
  const Buffer& to = server().Allocate(4096);
  ScatterGatherEntry piece = client().Allocate(4096).First(100);
  piece.local_key.value ^= 0x5a5a5a00;
  std::ranges::fill(to.bytes(), std::byte{0xee});
  ExpectLocalProtectionError(Write(1, {piece}, to.Start()));
  EXPECT_TRUE(HoldsOnly(to.bytes(), 0xee));
}

TEST_P(LocalErrors, ReadIntoMemoryWithoutLocalWrite) {
  const Buffer& into = client().Allocate(4096, kAccessLocalRead);
  const Buffer& from = server().Allocate(4096);
  std::ranges::fill(from.bytes(), std::byte{1});
  ExpectLocalProtectionError(Read(1, {into.First(100)}, from.Start()));
  EXPECT_TRUE(HoldsOnly(into.bytes(), 0));
}

TEST_P(LocalErrors, ReadIntoUserMemoryWithoutLocalWrite) {
  const Buffer& into = client().RegisterUserMemory(4096, kAccessLocalRead);
  const Buffer& from = server().Allocate(4096);
  std::ranges::fill(from.bytes(), std::byte{1});
  ExpectLocalProtectionError(Read(1, {into.First(100)}, from.Start()));
  EXPECT_TRUE(HoldsOnly(into.bytes(), 0));
}

TEST_P(LocalErrors, ReadBehindTheRegion) {
  const Buffer& into = client().Allocate(4096);
  const Buffer& from = server().Allocate(8192);
  ExpectLocalProtectionError(Read(1, {into.Piece(4000, 97)}, from.Start()));
}

TEST_P(LocalErrors, AtomicIntoMemoryWithoutLocalWrite) {
  REQUIRE_CAPABILITY(atomics);
  const Buffer& into = client().Allocate(64, kAccessLocalRead);
  const Buffer& target = server().Allocate(64, kAccessLocalWrite | kAccessRemoteAtomic);
  ExpectLocalProtectionError(FetchAndAdd(1, into.First(8), target.Start(), 1));
  EXPECT_TRUE(HoldsOnly(into.bytes(), 0));
}

TEST_P(LocalErrors, ReceiveWithAKeyThatWasNeverGiven) {
  ScatterGatherEntry piece = server().Allocate(4096).First(100);
  piece.local_key.value ^= 0x5a5a5a00;
  ExpectReceiveFails({piece});
}

TEST_P(LocalErrors, ReceiveBehindTheRegion) {
  const Buffer& to = server().Allocate(4096);
  std::ranges::fill(to.bytes(), std::byte{0xee});
  ExpectReceiveFails({to.Piece(4090, 100)});
}

TEST_P(LocalErrors, ReceiveIntoMemoryWithoutLocalWrite) {
  const Buffer& to = server().Allocate(4096, kAccessLocalRead);
  ExpectReceiveFails({to.First(100)});
  EXPECT_TRUE(HoldsOnly(to.bytes(), 0));
}

TEST_P(LocalErrors, ReceiveIntoAnotherDomain) {
  const Buffer& foreign = client().Allocate(4096);
  ExpectReceiveFails({foreign.First(100)});
  EXPECT_TRUE(HoldsOnly(foreign.bytes(), 0));
}

class LengthErrors : public ConnectedPair {
 protected:
  // InfiniBand specification vol. 1, C9-166: a message that does not fit its receive is answered
  // with a NAK "invalid request".
  void ExpectTooLong(size_t message_bytes, Pieces into) {
    const Buffer& from = client().Allocate(message_bytes);
    server().PostRecv(9, std::move(into));
    server().PostRecv(10, {});
    client().Post({Send(1, {from.First(message_bytes)}), Send(2, {})});
    client().ExpectRefusedByPeer(1, Status::kRemoteInvalidRequestError, {2});
    server().ExpectCompletion(9, Status::kLocalLengthError);
    server().ExpectFlushed({10});
    server().ExpectState(QueuePairState::kError);
  }
};

TEST_P(LengthErrors, OneByteTooLong) {
  const Buffer& to = server().Allocate(4096);
  std::ranges::fill(to.bytes(), std::byte{0xee});
  ExpectTooLong(65, {to.First(64)});
  EXPECT_TRUE(HoldsOnly(to.bytes().subspan(64), 0xee)) << "behind the receive";
}

TEST_P(LengthErrors, LargeMessageIntoASmallReceive) {
  const Buffer& to = server().Allocate(4096);
  std::ranges::fill(to.bytes(), std::byte{0xee});
  ExpectTooLong(100000, {to.First(2000)});
  EXPECT_TRUE(HoldsOnly(to.bytes().subspan(2000), 0xee)) << "behind the receive";
}

TEST_P(LengthErrors, AnyByteIntoAnEmptyReceive) { ExpectTooLong(1, {}); }

TEST_P(LengthErrors, LongerThanAllPiecesTogether) {
  if (can().recv_sge_max < 2) GTEST_SKIP() << "one scatter entry only";
  const Buffer& to = server().Allocate(4096);
  ExpectTooLong(21, {to.Piece(0, 10), to.Piece(100, 10)});
}

TEST_P(LengthErrors, MoreThanUserMemoryMayReceive) {
  const uint64_t limit = can().user_memory_receive_bytes_max;
  if (limit >= can().message_bytes_max || limit > (uint64_t{1} << 30)) {
    GTEST_SKIP() << "no limit below that of any message";
  }
  const Buffer& to = server().RegisterUserMemory(limit + 4096);
  ExpectTooLong(limit + 1, {to.All()});
}

VERBENA_CONFORMANCE(LocalErrors);
VERBENA_CONFORMANCE(LengthErrors);

}  // namespace
}  // namespace verbena::conformance
