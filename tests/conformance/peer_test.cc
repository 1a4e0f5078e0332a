// SPDX-License-Identifier: Apache-2.0
//
// The core of the model once more with the peer in another process, where addresses mean nothing
// and a peer may be stopped or killed at any time. Tests that need no process of their own also
// run with the peer in this process, on a second device.

#include "verbena/tests/conformance/peer.h"

#include <signal.h>

#include <algorithm>
#include <tuple>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;
using Type = ConnectionEvent::Type;

enum class Placement { kThisProcess, kAnotherProcess };
using Parameter = std::tuple<DeviceUnderTest, Placement>;

constexpr size_t kMebibyte = size_t{1} << 20;

class PeerFixture : public DeviceFixture, public testing::WithParamInterface<Parameter> {
 protected:
  void SetUp() override {
    DeviceFixture::SetUp();
    if (IsSkipped()) return;
    client_ = std::make_unique<Party>("client", device(), loop());
    client_->MakePair(client_->DefaultOptions());
    if (std::get<Placement>(GetParam()) == Placement::kThisProcess) {
      peer_ = std::make_unique<LocalPeer>(subject(), Must(subject().create()), loop());
    } else {
      auto child = std::make_unique<ChildPeer>(subject(), loop());
      child_ = child.get();
      peer_ = std::move(child);
    }
  }
  const DeviceUnderTest& subject() const override { return std::get<DeviceUnderTest>(GetParam()); }

  Party& client() { return *client_; }
  Peer& peer() { return *peer_; }
  ChildPeer& child() { return *child_; }
  void EndPeer() { peer_.reset(); }

  void ConnectToPeer() {
    Must(client().manager().Connect(client().pair(), peer().Listen(), {}));
    peer().Accept();
    client().ExpectEvent(Type::kEstablished, &client().pair());
  }
  void LetPeerConnect() {
    const auto listener = Must(client().manager().Listen(FreshAddress()));
    peer().StartConnect(listener->address());
    ConnectionEvent asked = client().ExpectEvent(Type::kConnectRequest);
    Must(client().manager().Accept(std::move(asked.request), client().pair(), {}));
    client().ExpectEvent(Type::kEstablished, &client().pair());
    peer().ExpectEvent(Type::kEstablished);
  }

 private:
  std::unique_ptr<Party> client_;
  std::unique_ptr<Peer> peer_;
  ChildPeer* child_ = nullptr;
};

class FromPeer : public PeerFixture {};

TEST_P(FromPeer, ConnectionIsAsGoodAsOurs) {
  LetPeerConnect();
  const Buffer& ours = client().Allocate(4096);
  client().PostRecv(1, {ours.All()});
  peer().PostRecv(2, 4096, 4096);
  peer().Fill(0, 3000, 7);
  peer().Send(3, 0, 3000);
  client().ExpectReceived(1, 3000);
  peer().ExpectCompletion(3, Status::kSuccess);
  client().Post(Send(4, {ours.First(3000)}));
  client().ExpectSuccess(4);
  peer().ExpectReceived(2, 3000);
  peer().ExpectHolds(4096, 3000, 7);
  client().Post(Write(5, {ours.First(3000)}, peer().Memory(9000)));
  client().ExpectSuccess(5);
  peer().ExpectHolds(9000, 3000, 7);
}

TEST_P(FromPeer, RejectionReachesIt) {
  const auto listener = Must(client().manager().Listen(FreshAddress()));
  peer().StartConnect(listener->address());
  client().ExpectEvent(Type::kConnectRequest).request.reset();
  peer().ExpectEvent(Type::kRejected);
  client().ExpectNoEvent();
}

class WithPeer : public PeerFixture {
 protected:
  void SetUp() override {
    PeerFixture::SetUp();
    if (!IsSkipped()) ConnectToPeer();
  }
};

TEST_P(WithPeer, DeliversEverySizeBothWays) {
  const Buffer& ours = client().Allocate(2 * kMebibyte);
  for (size_t size : {size_t{0}, size_t{1}, size_t{64}, size_t{111}, size_t{112}, size_t{113},
                      size_t{4096}, size_t{70000}, kMebibyte}) {
    SCOPED_TRACE(size);
    const uint32_t seed = static_cast<uint32_t>(size);
    FillPattern(ours.bytes(0, size), seed);
    client().PostRecv(2, {ours.Piece(kMebibyte, kMebibyte)});
    peer().PostRecv(3, 0, kMebibyte);
    client().Post(Send(1, {ours.First(size)}));
    peer().ExpectReceived(3, seed);
    client().ExpectSuccess(1, CompletionOpcode::kSend);
    peer().ExpectHolds(0, size, seed);
    peer().Send(4, 0, size);
    peer().ExpectCompletion(4, Status::kSuccess);
    client().ExpectReceived(2, seed);
    EXPECT_TRUE(HoldsPattern(ours.bytes(kMebibyte, size), seed));
  }
}

TEST_P(WithPeer, DeliversInOrder) {
  const Buffer& ours = client().Allocate(50 * 1024);
  for (uint64_t i = 0; i < 50; ++i) peer().PostRecv(i, i * 1024, 1024);
  for (uint64_t i = 0; i < 50; ++i) {
    FillPattern(ours.bytes(i * 1024, 1024), static_cast<uint32_t>(i));
    client().Post(Send(i, {ours.Piece(i * 1024, i % 2 == 0 ? 1024 : 24)}));
  }
  for (uint64_t i = 0; i < 50; ++i) {
    client().ExpectSuccess(i);
    peer().ExpectReceived(i, i % 2 == 0 ? 1024 : 24);
    peer().ExpectHolds(i * 1024, i % 2 == 0 ? 1024 : 24, static_cast<uint32_t>(i));
  }
}

TEST_P(WithPeer, WritesAndReadsItsMemory) {
  const Buffer& ours = client().Allocate(2 * kMebibyte);
  FillPattern(ours.bytes(0, kMebibyte), 1);
  client().Post(Write(1, {ours.First(kMebibyte)}, peer().Memory(777)));
  client().ExpectSuccess(1);
  peer().ExpectHolds(777, kMebibyte, 1);
  peer().Fill(777, kMebibyte, 2);
  client().Post(Read(2, {ours.Piece(kMebibyte, kMebibyte)}, peer().Memory(777)));
  client().ExpectSuccess(2);
  EXPECT_TRUE(HoldsPattern(ours.bytes(kMebibyte, kMebibyte), 2));
}

TEST_P(WithPeer, LetsItWriteAndReadOurMemory) {
  const Buffer& ours = client().Allocate(kMebibyte);
  peer().Fill(0, 100000, 1);
  peer().Write(1, 0, 100000, ours.At(5));
  peer().ExpectCompletion(1, Status::kSuccess);
  EXPECT_TRUE(HoldsPattern(ours.bytes(5, 100000), 1));
  FillPattern(ours.bytes(9, 100000), 2);
  peer().Read(2, 200000, 100000, ours.At(9));
  peer().ExpectCompletion(2, Status::kSuccess);
  peer().ExpectHolds(200000, 100000, 2);
}

TEST_P(WithPeer, ReachesMemoryRegisteredAfterTheConnection) {
  for (int i = 0; i < 10; ++i) {
    const Buffer& fresh = client().Allocate(300000);
    peer().Fill(0, 300000, static_cast<uint32_t>(i));
    peer().Write(1, 0, 300000, fresh.Start());
    peer().ExpectCompletion(1, Status::kSuccess);
    ASSERT_TRUE(HoldsPattern(fresh.bytes(), static_cast<uint32_t>(i)));
  }
}

TEST_P(WithPeer, CountsAtomically) {
  REQUIRE_CAPABILITY(atomics);
  const Buffer& old_value = client().Allocate(64);
  client().Post(FetchAndAdd(1, old_value.First(8), peer().Memory(64), 5));
  client().ExpectSuccess(1);
  EXPECT_EQ(old_value.word(), 0u);
  client().Post(CompareAndSwap(2, old_value.First(8), peer().Memory(64), 5, 9));
  client().ExpectSuccess(2);
  EXPECT_EQ(old_value.word(), 5u);
  client().Post(Read(3, {old_value.First(8)}, peer().Memory(64)));
  client().ExpectSuccess(3);
  EXPECT_EQ(old_value.word(), 9u);
}

TEST_P(WithPeer, WriteWithImmTellsIt) {
  REQUIRE_CAPABILITY(write_with_imm);
  const Buffer& ours = client().Allocate(5000);
  FillPattern(ours.bytes(), 3);
  peer().PostRecv(9, 0, 0);
  client().Post(WriteWithImm(1, {ours.All()}, peer().Memory(4096), 0x0a0b0c0d));
  const WorkCompletion completion = peer().ExpectCompletion(9, Status::kSuccess);
  EXPECT_EQ(completion.opcode, CompletionOpcode::kRecvWriteWithImm);
  EXPECT_EQ(completion.imm_data, 0x0a0b0c0du);
  EXPECT_EQ(completion.byte_length, 5000u);
  peer().ExpectHolds(4096, 5000, 3);
  client().ExpectSuccess(1);
}

TEST_P(WithPeer, ImmediateArrivesFromIt) {
  REQUIRE_CAPABILITY(send_with_imm);
  client().PostRecv(2, {});
  peer().SendWithImm(1, 0, 0, 0x01020304);
  EXPECT_EQ(client().ExpectSuccess(2).imm_data, 0x01020304u);
}

TEST_P(WithPeer, SendWaitsForItsReceive) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  const Buffer& ours = client().Allocate(5000);
  FillPattern(ours.bytes(), 3);
  client().Post(Send(1, {ours.All()}));
  client().ExpectNoCompletion();
  peer().PostRecv(9, 0, 8192);
  client().ExpectSuccess(1);
  peer().ExpectReceived(9, 5000);
  peer().ExpectHolds(0, 5000, 3);
}

TEST_P(WithPeer, ItsSendWaitsForOurReceive) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  const Buffer& ours = client().Allocate(8192);
  peer().Fill(0, 5000, 3);
  peer().Send(1, 0, 5000);
  client().ExpectNoCompletion();
  client().PostRecv(9, {ours.All()});
  client().ExpectReceived(9, 5000);
  peer().ExpectCompletion(1, Status::kSuccess);
  EXPECT_TRUE(HoldsPattern(ours.bytes(0, 5000), 3));
}

TEST_P(WithPeer, BadKeyIsRefused) {
  RemoteTarget at = peer().Memory(0);
  at.key.value ^= 0x5a5a5a00;
  peer().PostRecv(9, 0, 64);
  client().Post(Write(1, {client().Allocate(64).All()}, at));
  client().ExpectRefusedByPeer(1, Status::kRemoteAccessError);
  peer().ExpectCompletion(9, Status::kFlushed);
}

TEST_P(WithPeer, OutOfBoundsIsRefused) {
  client().Post(Read(1, {client().Allocate(64).All()}, peer().Memory(kPeerMemoryBytes - 63)));
  client().ExpectRefusedByPeer(1, Status::kRemoteAccessError);
}

TEST_P(WithPeer, LengthErrorIsToldBothSides) {
  peer().PostRecv(9, 0, 64);
  client().Post(Send(1, {client().Allocate(65).All()}));
  client().ExpectRefusedByPeer(1, Status::kRemoteInvalidRequestError);
  peer().ExpectCompletion(9, Status::kLocalLengthError);
}

TEST_P(WithPeer, InErrorDoesNotAnswer) {
  REQUIRE_CAPABILITY(error_tells_sender);
  peer().PostRecv(9, 0, 64);
  peer().MoveToError();
  peer().ExpectCompletion(9, Status::kFlushed);
  client().Post({Send(1, {}), Send(2, {})});
  client().ExpectCompletion(1, Status::kRetryExceeded);
  client().ExpectFlushed({2});
}

TEST_P(WithPeer, DisconnectsFromItsSide) {
  client().PostRecv(1, {});
  peer().Disconnect();
  client().ExpectEvent(Type::kDisconnected, &client().pair());
  client().ExpectFlushed({1});
}

TEST_P(WithPeer, LearnsThatWeDisconnected) {
  peer().PostRecv(9, 0, 64);
  client().manager().Disconnect(client().pair());
  peer().ExpectEvent(Type::kDisconnected);
  peer().ExpectCompletion(9, Status::kFlushed);
}

TEST_P(WithPeer, EndingInGoodOrderDisconnects) {
  client().PostRecv(1, {});
  EndPeer();
  client().ExpectEvent(Type::kDisconnected, &client().pair());
  client().ExpectFlushed({1});
  client().Post(Send(2, {}));
  client().ExpectFlushed({2});
}

class WithKilledPeer : public PeerFixture {};

TEST_P(WithKilledPeer, ConnectionEndsAndReceivesAreFlushed) {
  ConnectToPeer();
  for (uint64_t i = 0; i < 3; ++i) client().PostRecv(i, {});
  child().Kill();
  client().ExpectEvent(Type::kDisconnected, &client().pair());
  EXPECT_EQ(client().pair().state(), QueuePairState::kError);
  client().ExpectFlushed({0, 1, 2});
  client().Post(Send(5, {}));
  client().ExpectFlushed({5});
}

TEST_P(WithKilledPeer, ThatHadConnectedToUsIsNoticedToo) {
  LetPeerConnect();
  client().PostRecv(1, {});
  child().Kill();
  client().ExpectEvent(Type::kDisconnected, &client().pair());
  client().ExpectFlushed({1});
}

TEST_P(WithKilledPeer, RequestOfADeadOneDoesNotConnect) {
  const auto listener = Must(client().manager().Listen(FreshAddress()));
  peer().StartConnect(listener->address());
  ConnectionEvent asked = client().ExpectEvent(Type::kConnectRequest);
  child().Kill();
  client().PostRecv(1, {});
  if (client().manager().Accept(std::move(asked.request), client().pair(), {}).ok()) {
    // It may look established for a moment.
    ConnectionEvent event = client().NextEvent();
    if (event.type == Type::kEstablished) event = client().NextEvent();
    EXPECT_EQ(event.type, Type::kDisconnected);
    client().ExpectFlushed({1});
  }
}

TEST_P(WithKilledPeer, SendsThatWaitForItEnd) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  ConnectToPeer();
  client().Post({Send(1, {}), Send(2, {}).Unsignaled(), Send(3, {})});
  client().ExpectNoCompletion();
  child().Kill();
  const WorkCompletion first = client().NextCompletion();
  EXPECT_EQ(first.wr_id, 1u);
  EXPECT_TRUE(first.status == Status::kFlushed || first.status == Status::kRetryExceeded)
      << CompletionStatusName(first.status);
  client().ExpectFlushed({2, 3});
  client().ExpectEvent(Type::kDisconnected, &client().pair());
}

TEST_P(WithKilledPeer, TrafficInFlightEndsWithoutACrash) {
  ConnectToPeer();
  const Buffer& ours = client().Allocate(kMebibyte);
  const RemoteTarget theirs = peer().Memory(0);
  bool ended = false;
  child().Signal(SIGSTOP);  // So that nothing of it ends in good order.
  for (uint64_t i = 0; i < 20000 && !ended; ++i) {
    if (i == 20) child().Kill();
    client().Post(Write(i, {ours.All()}, theirs));
    const WorkCompletion completion = client().NextCompletion();
    EXPECT_EQ(completion.wr_id, i);
    ended = completion.status != Status::kSuccess;
    if (ended) {
      EXPECT_TRUE(completion.status == Status::kFlushed ||
                  completion.status == Status::kRetryExceeded)
          << CompletionStatusName(completion.status);
    }
  }
  EXPECT_TRUE(ended);
  client().ExpectEvent(Type::kDisconnected, &client().pair());
}

TEST_P(WithKilledPeer, ThatWasWritingChangesNothingAfterTheEnd) {
  ConnectToPeer();
  const Buffer& ours = client().Allocate(kMebibyte);
  peer().Fill(0, kMebibyte, 1);
  for (uint64_t i = 0; i < 16; ++i) peer().Write(i, 0, kMebibyte, ours.Start());
  child().Kill();
  client().ExpectEvent(Type::kDisconnected, &client().pair());
  EXPECT_EQ(client().pair().state(), QueuePairState::kError);
  std::ranges::fill(ours.bytes(), std::byte{0xee});
  loop().RunQuietly();
  EXPECT_TRUE(HoldsOnly(ours.bytes(), 0xee));
}

TEST_P(WithKilledPeer, UnansweredRequestEnds) {
  Must(client().manager().Connect(client().pair(), peer().Listen(), {}));
  peer().TakeRequest();
  child().Kill();
  const ConnectionEvent event = client().NextEvent();
  EXPECT_TRUE(event.type == Type::kRejected || event.type == Type::kUnreachable)
      << testing::PrintToString(event.type);
  EXPECT_FALSE(event.status.ok());
  client().ExpectNoEvent();
}

TEST_P(WithKilledPeer, ItsAddressIsFree) {
  const Address address = peer().Listen();
  EXPECT_THAT(client().manager().Listen(address), HasCode(absl::StatusCode::kAlreadyExists));
  child().Kill();
  EXPECT_THAT(client().manager().Listen(address), IsOk());
}

TEST_P(WithKilledPeer, WhatArrivedBeforeIsNotLost) {
  ConnectToPeer();
  const Buffer& ours = client().Allocate(4096);
  for (uint64_t i = 0; i < 4; ++i) client().PostRecv(i, {ours.Piece(1024 * i, 1024)});
  peer().Fill(0, 1000, 5);
  for (uint64_t i = 0; i < 3; ++i) {
    peer().Send(i, 0, 1000);
    peer().ExpectCompletion(i, Status::kSuccess);
  }
  child().Kill();
  for (uint64_t i = 0; i < 3; ++i) {
    client().ExpectReceived(i, 1000);
    EXPECT_TRUE(HoldsPattern(ours.bytes(1024 * i, 1000), 5));
  }
  client().ExpectFlushed({3});
}

TEST_P(WithKilledPeer, OtherConnectionsGoOn) {
  ConnectToPeer();
  ChildPeer second(subject(), loop());
  const auto pair = client().NewQueuePair(client().DefaultOptions());
  Must(client().manager().Connect(*pair, second.Listen(), {}));
  second.Accept();
  client().ExpectEvent(Type::kEstablished, pair.get());
  child().Kill();
  client().ExpectEvent(Type::kDisconnected, &client().pair());
  second.PostRecv(1, 0, 64);
  client().Post(*pair, Send(2, {}));
  client().ExpectSuccess(2);
  second.ExpectReceived(1, 0);
}

class WithStoppedPeer : public PeerFixture {};

// One-sided operations are the device's business, not that of the peer's program.
TEST_P(WithStoppedPeer, OneSidedOperationsGoOn) {
  ConnectToPeer();
  const Buffer& ours = client().Allocate(2 * kMebibyte);
  const RemoteTarget theirs = peer().Memory(64);
  FillPattern(ours.bytes(0, kMebibyte), 1);
  child().Signal(SIGSTOP);
  client().Post(Write(1, {ours.First(kMebibyte)}, theirs));
  client().ExpectSuccess(1);
  client().Post(Read(2, {ours.Piece(kMebibyte, kMebibyte)}, theirs));
  client().ExpectSuccess(2);
  EXPECT_TRUE(HoldsPattern(ours.bytes(kMebibyte, kMebibyte), 1));
  if (can().atomics) {
    client().Post(FetchAndAdd(3, ours.First(8), theirs, 1));
    client().ExpectSuccess(3);
  }
  EXPECT_EQ(client().pair().state(), QueuePairState::kReadyToSend);
  child().Signal(SIGCONT);
}

std::string ParameterName(const testing::TestParamInfo<Parameter>& info) {
  return std::get<DeviceUnderTest>(info.param).name +
         (std::get<Placement>(info.param) == Placement::kThisProcess ? "InThisProcess"
                                                                     : "InAnotherProcess");
}

const auto kEitherPlacement = testing::Values(Placement::kThisProcess, Placement::kAnotherProcess);
const auto kProcessOfItsOwn = testing::Values(Placement::kAnotherProcess);

#define VERBENA_CONFORMANCE_WITH_PEER(Suite, placements) \
  INSTANTIATE_TEST_SUITE_P(                              \
      , Suite, testing::Combine(testing::ValuesIn(DevicesUnderTest()), placements), ParameterName)

VERBENA_CONFORMANCE_WITH_PEER(FromPeer, kEitherPlacement);
VERBENA_CONFORMANCE_WITH_PEER(WithPeer, kEitherPlacement);
VERBENA_CONFORMANCE_WITH_PEER(WithKilledPeer, kProcessOfItsOwn);
VERBENA_CONFORMANCE_WITH_PEER(WithStoppedPeer, kProcessOfItsOwn);

}  // namespace
}  // namespace verbena::conformance
