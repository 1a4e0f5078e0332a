// SPDX-License-Identifier: Apache-2.0
//
// A SEND or WRITE_WITH_IMM that meets no receive: retries, their end, and recovery. InfiniBand
// specification vol. 1, 9.7.5.2.8: a retry count of n means n retries, so n + 1 refusals; 7 means
// for ever.

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;

class ReceiverNotReady : public TwoParties {
 protected:
  void SetUp() override {
    TwoParties::SetUp();
    if (!IsSkipped()) REQUIRE_CAPABILITY(receiver_not_ready);
  }

  // Both sides say the same, since librdmacm's count is about the sends of the peer.
  void ConnectWithRetries(uint8_t retries) {
    PairOptions options = Defaults();
    options.client_connect.receiver_not_ready_retries = retries;
    options.server_connect.receiver_not_ready_retries = retries;
    Connect(options);
  }
};

TEST_P(ReceiverNotReady, EndsWhenTheRetriesAreExceeded) {
  for (uint8_t retries : {0, 1, 3}) {
    SCOPED_TRACE(static_cast<int>(retries));
    ConnectWithRetries(retries);
    const Buffer& from = client().Allocate(64);
    client().Post({Send(1, {from.First(8)}), Send(2, {from.First(8)}).Unsignaled(),
                   Send(3, {from.First(8)})});
    client().ExpectCompletion(1, Status::kReceiverNotReadyRetryExceeded);
    client().ExpectFlushed({2, 3});
    client().ExpectState(QueuePairState::kError);
    // The receiver did nothing wrong and is not in error.
    EXPECT_EQ(server().pair().state(), QueuePairState::kReadyToSend);
    server().ExpectNoCompletion();
    client().DestroyPair();
    server().ExpectEvent(ConnectionEvent::Type::kDisconnected, &server().pair());
  }
}

TEST_P(ReceiverNotReady, CountsEveryTime) {
  for (uint8_t retries : {0, 1, 3}) {
    ConnectWithRetries(retries);
    client().Post(Send(1, {}));
    client().ExpectCompletion(1, Status::kReceiverNotReadyRetryExceeded);
    EXPECT_EQ(client().pair().counters().receiver_not_ready, retries + 1u);
    EXPECT_EQ(client().pair().counters().messages_sent, 0u);
    client().DestroyPair();
    server().ExpectEvent(ConnectionEvent::Type::kDisconnected, &server().pair());
  }
}

TEST_P(ReceiverNotReady, RecoversWhenAReceiveIsPostedLater) {
  ConnectWithRetries(7);
  const Buffer& from = client().Allocate(8192);
  const Buffer& to = server().Allocate(8192);
  FillPattern(from.bytes(), 1);
  client().Post(
      {Send(1, {from.First(10)}), Send(2, {from.First(5000)}), Send(3, {from.First(30)})});
  client().ExpectNoCompletion();
  EXPECT_EQ(client().pair().state(), QueuePairState::kReadyToSend);
  server().PostRecv(11, {to.First(16)});
  server().ExpectReceived(11, 10);
  client().ExpectSuccess(1);
  client().ExpectNoCompletion();
  server().PostRecv(12, {to.All()});
  server().PostRecv(13, {to.Piece(6000, 100)});
  server().ExpectReceived(12, 5000);
  server().ExpectReceived(13, 30);
  client().ExpectSuccess(2);
  client().ExpectSuccess(3);
  EXPECT_TRUE(HoldsPattern(to.bytes(0, 5000), 1));
  EXPECT_TRUE(HoldsPattern(to.bytes(6000, 30), 1));
}

TEST_P(ReceiverNotReady, IsCountedWhenItRecovers) {
  ConnectWithRetries(7);
  client().Post(Send(1, {}));
  client().ExpectNoCompletion();
  server().PostRecv(2, {});
  client().ExpectSuccess(1);
  EXPECT_GE(client().pair().counters().receiver_not_ready, 1u);
  EXPECT_EQ(server().pair().counters().receiver_not_ready, 0u);
}

TEST_P(ReceiverNotReady, KeepsTheInlineBytes) {
  ConnectWithRetries(7);
  if (can().inline_bytes_max < 8) GTEST_SKIP() << "no inline sends";
  const Buffer& to = server().Allocate(64);
  uint64_t value = 0x1122334455667788;
  client().Post(Send(1, {{reinterpret_cast<uint64_t>(&value), 8, {}}}).Inline());
  value = 0;
  client().ExpectNoCompletion();
  server().PostRecv(2, {to.All()});
  server().ExpectReceived(2, 8);
  EXPECT_EQ(to.word(), 0x1122334455667788u);
}

TEST_P(ReceiverNotReady, NothingOvertakesTheSendThatWaits) {
  ConnectWithRetries(7);
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  client().Post(Write(1, {from.First(8)}, to.Start()));  // From here on nothing but order holds it.
  client().ExpectSuccess(1);
  from.word() = 5;
  client().Post({Send(1, {}), Write(2, {from.First(8)}, to.Start())});
  client().ExpectNoCompletion();
  EXPECT_EQ(to.word(), 0u) << "the write ran before the send in front of it";
  server().PostRecv(9, {});
  client().ExpectSuccess(1);
  client().ExpectSuccess(2);
  EXPECT_EQ(to.word(), 5u);
}

TEST_P(ReceiverNotReady, WriteWithImmWaitsToo) {
  REQUIRE_CAPABILITY(write_with_imm);
  ConnectWithRetries(7);
  const Buffer& from = client().Allocate(4096);
  const Buffer& to = server().Allocate(4096);
  FillPattern(from.bytes(), 1);
  client().Post(WriteWithImm(1, {from.All()}, to.Start(), 6));
  client().ExpectNoCompletion();
  server().PostRecv(9, {});
  EXPECT_EQ(server().ExpectSuccess(9, CompletionOpcode::kRecvWriteWithImm).imm_data, 6u);
  client().ExpectSuccess(1);
  EXPECT_TRUE(HoldsPattern(to.bytes(), 1));
}

TEST_P(ReceiverNotReady, WriteWithImmExceedsItsRetriesToo) {
  REQUIRE_CAPABILITY(write_with_imm);
  ConnectWithRetries(1);
  const Buffer& to = server().Allocate(4096);
  client().Post(WriteWithImm(1, {client().Allocate(64).First(8)}, to.Start(), 6));
  client().ExpectCompletion(1, Status::kReceiverNotReadyRetryExceeded);
  client().ExpectState(QueuePairState::kError);
}

TEST_P(ReceiverNotReady, OneSidedOperationsNeedNoReceive) {
  ConnectWithRetries(0);
  const Buffer& ours = client().Allocate(64);
  const Buffer& theirs = server().Allocate(64);
  client().Post(
      {Write(1, {ours.First(8)}, theirs.Start()), Read(2, {ours.First(8)}, theirs.Start())});
  client().ExpectSuccess(1);
  client().ExpectSuccess(2);
}

TEST_P(ReceiverNotReady, OtherPairsGoOnMeanwhile) {
  ConnectWithRetries(7);
  const Connection other = ConnectOneMore(client(), server(), FreshAddress());
  client().Post(Send(1, {}));
  for (uint64_t i = 0; i < 10; ++i) {
    server().PostRecv(*other.server, 50 + i, {});
    client().Post(*other.client, Send(60 + i, {}));
    client().ExpectSuccess(60 + i);
    server().ExpectReceived(50 + i, 0);
  }
  server().PostRecv(2, {});
  server().ExpectReceived(2, 0);
  client().ExpectSuccess(1);
}

// Without the notion of it, the message finds nothing and the connection ends (RFC 5040, 7).
class ReceiverMissing : public ConnectedPair {};

TEST_P(ReceiverMissing, EndsTheConnection) {
  if (can().receiver_not_ready) GTEST_SKIP() << "the device has receiver-not-ready";
  client().Post(Send(1, {}));
  server().ExpectState(QueuePairState::kError);
  client().ExpectState(QueuePairState::kError);
}

VERBENA_CONFORMANCE(ReceiverNotReady);
VERBENA_CONFORMANCE(ReceiverMissing);

}  // namespace
}  // namespace verbena::conformance
