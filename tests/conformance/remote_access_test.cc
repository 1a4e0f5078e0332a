// SPDX-License-Identifier: Apache-2.0
//
// What a peer may not reach: keys, bounds and rights of one-sided operations. InfiniBand
// specification vol. 1, 9.7.4.1: the responder answers with a NAK "remote access error", and its
// queue pair goes to the error state as the requester's does.

#include <algorithm>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;

class RemoteAccess : public ConnectedPair {
 protected:
  Pieces Ours(size_t bytes) {
    return {client().Allocate(std::max<size_t>(bytes, 64)).First(bytes)};
  }

  void ExpectRefused(const Request& request) {
    server().PostRecv(8, {});
    server().PostRecv(9, {});
    client().Post({request, Send(100, {})});
    client().ExpectRefusedByPeer(request.work().wr_id, Status::kRemoteAccessError, {100});
    server().ExpectFlushed({8, 9});
    server().ExpectState(QueuePairState::kError);
  }

  // Refused, and the bytes there stay as they were.
  void ExpectRefusedAndUntouched(const Request& request, const Buffer& target) {
    std::ranges::fill(target.bytes(), std::byte{0xee});
    ExpectRefused(request);
    EXPECT_TRUE(HoldsOnly(target.bytes(), 0xee));
  }
};

TEST_P(RemoteAccess, WriteWithAKeyThatWasNeverGiven) {
  const Buffer& target = server().Allocate(4096);
  RemoteTarget at = target.Start();
  at.key.value ^= 0x5a5a5a00;
  ExpectRefusedAndUntouched(Write(1, Ours(100), at), target);
}

TEST_P(RemoteAccess, TellsTheRespondersProgram) {
  RemoteTarget at = server().Allocate(4096).Start();
  at.key.value ^= 0x5a5a5a00;
  ExpectRefused(Write(1, Ours(100), at));
  ExpectAsyncEvent(AsyncEvent::Type::kQueuePairAccessError, server().pair());
}

TEST_P(RemoteAccess, WriteWithAKeyOfAnotherTag) {
  // The tag is the low 8 bits; with another one it is another key.
  const Buffer& target = server().Allocate(4096);
  RemoteTarget at = target.Start();
  at.key.value ^= 1;
  ExpectRefusedAndUntouched(Write(1, Ours(100), at), target);
}

TEST_P(RemoteAccess, ReadWithAKeyThatWasNeverGiven) {
  RemoteTarget at = server().Allocate(4096).Start();
  at.key.value ^= 0x5a5a5a00;
  ExpectRefused(Read(1, Ours(100), at));
}

TEST_P(RemoteAccess, WriteOneByteBehindTheRegion) {
  const Buffer& target = server().Allocate(4096);
  ExpectRefusedAndUntouched(Write(1, Ours(100), target.At(3997)), target);
}

TEST_P(RemoteAccess, WriteOneByteBeforeTheRegion) {
  const Buffer& target = server().Allocate(4096);
  ExpectRefusedAndUntouched(Write(1, Ours(100), target.At(-1)), target);
}

TEST_P(RemoteAccess, WriteBehindARegionThatIsNotWholePages) {
  const Buffer& target = server().Allocate(5000);
  ExpectRefusedAndUntouched(Write(1, Ours(2), target.At(4999)), target);
}

TEST_P(RemoteAccess, LargeWriteThatEndsBehindTheRegion) {
  const Buffer& target = server().Allocate(1 << 20);
  ExpectRefusedAndUntouched(Write(1, Ours(1 << 20), target.At(1)), target);
}

TEST_P(RemoteAccess, ReadOneByteBehindTheRegion) {
  ExpectRefused(Read(1, Ours(100), server().Allocate(4096).At(3997)));
}

TEST_P(RemoteAccess, ReadOneByteBeforeTheRegion) {
  ExpectRefused(Read(1, Ours(100), server().Allocate(4096).At(-1)));
}

TEST_P(RemoteAccess, WriteWhoseEndWrapsAround) {
  const Buffer& target = server().Allocate(4096);
  // The last byte would be target's first, counted modulo 2^64.
  RemoteTarget at = target.Start();
  at.address = ~uint64_t{0} - 50;
  ExpectRefusedAndUntouched(Write(1, Ours(100), at), target);
}

TEST_P(RemoteAccess, ReadWhoseEndWrapsAround) {
  RemoteTarget at = server().Allocate(4096).Start();
  at.address = ~uint64_t{0} - 50;
  ExpectRefused(Read(1, Ours(100), at));
}

TEST_P(RemoteAccess, WriteAtAddressZero) {
  const Buffer& target = server().Allocate(4096);
  ExpectRefusedAndUntouched(Write(1, Ours(100), {0, target.region().remote_key()}), target);
}

TEST_P(RemoteAccess, WriteWithoutTheRight) {
  const Buffer& target = server().Allocate(4096, kAccessLocalWrite | kAccessRemoteRead);
  ExpectRefusedAndUntouched(Write(1, Ours(100), target.Start()), target);
}

TEST_P(RemoteAccess, WriteToMemoryWithoutAnyRemoteRight) {
  const Buffer& target = server().Allocate(4096, kAccessLocalWrite);
  ExpectRefusedAndUntouched(Write(1, Ours(100), target.Start()), target);
}

TEST_P(RemoteAccess, WriteToPrivateUserMemory) {
  const Buffer& target = server().RegisterUserMemory(4096);
  ExpectRefusedAndUntouched(Write(1, Ours(100), target.Start()), target);
}

TEST_P(RemoteAccess, InlineWriteWithoutTheRight) {
  if (can().inline_bytes_max < 8) GTEST_SKIP() << "no inline sends";
  const Buffer& target = server().Allocate(4096, kAccessLocalWrite | kAccessRemoteRead);
  ExpectRefusedAndUntouched(Write(1, Ours(8), target.Start()).Inline(), target);
}

TEST_P(RemoteAccess, ReadWithoutTheRight) {
  const Buffer& target = server().Allocate(4096, kAccessLocalWrite | kAccessRemoteWrite);
  std::ranges::fill(target.bytes(), std::byte{0x11});
  const Buffer& into = client().Allocate(4096);
  ExpectRefused(Read(1, {into.First(100)}, target.Start()));
  EXPECT_TRUE(HoldsOnly(into.bytes(), 0));
}

TEST_P(RemoteAccess, WriteWithImmWithoutTheRight) {
  REQUIRE_CAPABILITY(write_with_imm);
  const Buffer& target = server().Allocate(4096, kAccessLocalWrite | kAccessRemoteRead);
  ExpectRefusedAndUntouched(WriteWithImm(1, Ours(100), target.Start(), 5), target);
}

TEST_P(RemoteAccess, WriteWithImmOutOfBounds) {
  REQUIRE_CAPABILITY(write_with_imm);
  const Buffer& target = server().Allocate(4096);
  ExpectRefusedAndUntouched(WriteWithImm(1, Ours(100), target.At(4000), 5), target);
}

TEST_P(RemoteAccess, CompareAndSwapWithoutTheRight) {
  REQUIRE_CAPABILITY(atomics);
  const Buffer& target = server().Allocate(64);
  ExpectRefusedAndUntouched(CompareAndSwap(1, Ours(8)[0], target.Start(), 0xeeeeeeeeeeeeeeee, 1),
                            target);
}

TEST_P(RemoteAccess, FetchAndAddWithoutTheRight) {
  REQUIRE_CAPABILITY(atomics);
  const Buffer& target = server().Allocate(64);
  ExpectRefusedAndUntouched(FetchAndAdd(1, Ours(8)[0], target.Start(), 1), target);
}

TEST_P(RemoteAccess, FetchAndAddBehindTheRegion) {
  REQUIRE_CAPABILITY(atomics);
  const Buffer& target = server().Allocate(4096, kAccessLocalWrite | kAccessRemoteAtomic);
  ExpectRefusedAndUntouched(FetchAndAdd(1, Ours(8)[0], target.At(4096), 1), target);
}

TEST_P(RemoteAccess, FetchAndAddAcrossTheEndOfTheRegion) {
  REQUIRE_CAPABILITY(atomics);
  const Buffer& target = server().Allocate(4092, kAccessLocalWrite | kAccessRemoteAtomic);
  ExpectRefusedAndUntouched(FetchAndAdd(1, Ours(8)[0], target.At(4088), 1), target);
}

TEST_P(RemoteAccess, WriteToADeregisteredRegion) {
  Buffer& target = server().Allocate(4096);
  const RemoteTarget at = target.Start();
  // Used once, so that no cache of an earlier look-up keeps it open.
  client().Post(Write(50, Ours(100), at));
  client().ExpectSuccess(50);
  target.Deregister();
  ExpectRefused(Write(1, Ours(100), at));
}

TEST_P(RemoteAccess, WriteToARegionThatTookThePlaceOfADeregisteredOne) {
  const RemoteTarget old = [&] {
    Buffer& target = server().Allocate(4096);
    const RemoteTarget at = target.Start();
    client().Post(Write(50, Ours(100), at));
    client().ExpectSuccess(50);
    target.Deregister();
    return at;
  }();
  const Buffer& successor = server().Allocate(4096);
  EXPECT_NE(successor.region().remote_key(), old.key);
  ExpectRefusedAndUntouched(Write(1, Ours(100), {successor.region().address(), old.key}),
                            successor);
}

TEST_P(RemoteAccess, WriteToAnotherDomainOfThePeer) {
  // A region of the same process, even of the same thread, but of a domain that this connection
  // is not in.
  Party other("other server", device(), loop());
  const Buffer& target = other.Allocate(4096);
  ExpectRefusedAndUntouched(Write(1, Ours(100), target.Start()), target);
}

TEST_P(RemoteAccess, ReadFromAnotherDomainOfThePeer) {
  Party other("other server", device(), loop());
  const Buffer& target = other.Allocate(4096);
  std::ranges::fill(target.bytes(), std::byte{0x11});
  const Buffer& into = client().Allocate(4096);
  ExpectRefused(Read(1, {into.First(100)}, target.Start()));
  EXPECT_TRUE(HoldsOnly(into.bytes(), 0));
}

TEST_P(RemoteAccess, OurOwnKeyIsNoneOfThePeers) {
  const Buffer& ours = client().Allocate(4096);
  ExpectRefusedAndUntouched(Write(1, Ours(100), ours.Start()), ours);
}

TEST_P(RemoteAccess, AnUnsignalledRequestThatFailsCompletes) {
  REQUIRE_CAPABILITY(error_tells_sender);
  const Buffer& target = server().Allocate(4096);
  client().Post({Write(1, Ours(100), target.Start()).Unsignaled(),
                 Write(2, Ours(100), target.At(4096)).Unsignaled(),
                 Write(3, Ours(100), target.At(200)).Unsignaled(),
                 Write(4, Ours(100), target.At(200))});
  client().ExpectCompletion(2, Status::kRemoteAccessError);
  client().ExpectFlushed({3, 4});
  client().ExpectNoCompletion();
  EXPECT_TRUE(HoldsOnly(target.bytes(200, 100), 0)) << "nothing behind the failure may run";
}

TEST_P(RemoteAccess, ErrorLeavesOtherPairsAlone) {
  const Buffer& target = server().Allocate(4096);
  const Connection other = ConnectOneMore(client(), server(), FreshAddress());
  const Buffer& into = server().Allocate(64);
  server().PostRecv(*other.server, 7, {into.All()});
  ExpectRefused(Write(1, Ours(100), target.At(4096)));
  EXPECT_EQ(other.client->state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(other.server->state(), QueuePairState::kReadyToSend);
  client().Post(*other.client, Write(2, Ours(100), target.Start()));
  client().ExpectSuccess(2);
  client().Post(*other.client, Send(3, Ours(33)));
  client().ExpectSuccess(3);
  server().ExpectReceived(7, 33);
}

VERBENA_CONFORMANCE(RemoteAccess);

}  // namespace
}  // namespace verbena::conformance
