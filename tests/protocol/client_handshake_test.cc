// SPDX-License-Identifier: Apache-2.0
//
// What a real channel makes of a server's hello, of its refusal, and of its silence.

#include <string>

#include "absl/strings/str_cat.h"
#include "verbena/tests/protocol/client_fixture.h"

namespace verbena {
namespace {

class ClientHandshake : public ClientProtocolTest {
 protected:
  // The server accepts with `hello`: the call's status.
  absl::Status ReceiveHello(const PrivateData& hello) {
    MakeServer();
    MakeChannel();
    PendingCall call(*channel_, "hello");
    peer_->AwaitRequest();
    peer_->Accept(hello);
    const absl::Status status = call.Await();
    peer_->AwaitDisconnected();
    EXPECT_EQ(peer_->FramesWaiting(), 0u) << "a frame to a server it does not understand";
    EXPECT_EQ(channel_->statistics().connects, 0u);
    ExpectConnectsAgain();
    return status;
  }
  absl::Status ReceiveRefusal(const PrivateData& refusal) {
    MakeServer();
    MakeChannel();
    PendingCall call(*channel_, "hello");
    peer_->AwaitRequest();
    peer_->Reject(refusal);
    const absl::Status status = call.Await();
    ExpectConnectsAgain();
    return status;
  }
  // The next call, after the backoff, connects to a server that is now well.
  void ExpectConnectsAgain() {
    peer_->Renew();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::unique_ptr<PendingCall> call;
    const uint32_t id = OpenWithCall(call, "again");
    peer_->Send(ResponseFrame(id, 0, "welcome"));
    EXPECT_THAT(call->Await(), IsOk());
    EXPECT_EQ(call->response(), "welcome");
  }
  static PrivateData HelloWith(size_t offset, std::byte value) {
    PrivateData data = EncodeHello({.ring_depth = 128, .slot_bytes = 4096});
    data.bytes[offset] = value;
    return data;
  }
};

TEST_F(ClientHandshake, SendsAGoodHelloWithItsOwnSizes) {
  MakeServer();
  ChannelOptions options;
  options.endpoint = {.ring_depth = 32, .slot_bytes = 1024};
  MakeChannel(options);
  std::unique_ptr<PendingCall> call =
      std::make_unique<PendingCall>(*channel_, "hello");
  const Hello hello = peer_->AcceptAndOpen();
  EXPECT_EQ(hello.ring_depth, 32u);
  EXPECT_EQ(hello.slot_bytes, 1024u);
  peer_->Send(ResponseFrame(AwaitRequest().frame.call_id, 0, "x"));
  EXPECT_THAT(call->Await(), IsOk());
}

TEST_F(ClientHandshake, ReceiveVersion2ExpectFailedPreconditionThatNamesBoth) {
  EXPECT_THAT(ReceiveHello(HelloWith(4, std::byte{2})),
              Is(absl::StatusCode::kFailedPrecondition,
                 "the peer speaks version 2 of the wire protocol and this side version 1"));
}

TEST_F(ClientHandshake, ReceiveGarbageExpectThatItIsNoVerbenaServer) {
  PrivateData garbage;
  garbage.bytes.fill(std::byte{0xee});
  garbage.size = garbage.bytes.size();
  const absl::Status status = ReceiveHello(garbage);
  EXPECT_THAT(status, Is(absl::StatusCode::kInvalidArgument, "does not speak Verbena's protocol"));
  EXPECT_THAT(status,
              Is(absl::StatusCode::kInvalidArgument, "no connection to " + address_.ToString()));
}

TEST_F(ClientHandshake, ReceiveNoHelloExpectThatItIsNoVerbenaServer) {
  EXPECT_THAT(ReceiveHello({}),
              Is(absl::StatusCode::kInvalidArgument, "does not speak Verbena's protocol"));
}

TEST_F(ClientHandshake, ReceiveSizesOutOfBoundsExpectThatItSaysSo) {
  EXPECT_THAT(ReceiveHello(HelloWith(11, std::byte{0x10})),
              Is(absl::StatusCode::kInvalidArgument, "out of bounds"));
}

TEST_F(ClientHandshake, ReceiveARefusalOfTheVersionExpectFailedPrecondition) {
  EXPECT_THAT(ReceiveRefusal(EncodeRefusal({.reason = Refusal::Reason::kVersion, .limit = 3})),
              Is(absl::StatusCode::kFailedPrecondition, "the server speaks version 3"));
}

TEST_F(ClientHandshake, ReceiveARefusalForTooManyConnectionsExpectResourceExhausted) {
  EXPECT_THAT(ReceiveRefusal(EncodeRefusal({.reason = Refusal::Reason::kConnections, .limit = 7})),
              Is(absl::StatusCode::kResourceExhausted, "all the connections it takes, 7"));
}

TEST_F(ClientHandshake, ReceiveARefusalOfAServerThatShutsDownExpectUnavailable) {
  EXPECT_THAT(ReceiveRefusal(EncodeRefusal({.reason = Refusal::Reason::kShuttingDown})),
              Is(absl::StatusCode::kUnavailable, "shutting down"));
}

TEST_F(ClientHandshake, ReceiveARefusalWithoutAReasonExpectUnavailable) {
  EXPECT_EQ(ReceiveRefusal({}).code(), absl::StatusCode::kUnavailable);
}

TEST_F(ClientHandshake, ReceiveARefusalOfGarbageExpectUnavailable) {
  PrivateData garbage;
  garbage.bytes.fill(std::byte{0x99});
  garbage.size = garbage.bytes.size();
  EXPECT_THAT(ReceiveRefusal(garbage), Is(absl::StatusCode::kUnavailable, "without a reason"));
}

TEST_F(ClientHandshake, AServerThatNeverAnswersExpectUnavailableWhenTheConnectTimeoutPasses) {
  MakeServer();
  ChannelOptions options;
  options.connect_timeout = std::chrono::milliseconds(50);
  MakeChannel(options);
  PendingCall call(*channel_, "hello");
  EXPECT_THAT(call.Await(),
              Is(absl::StatusCode::kUnavailable, "no connection to " + address_.ToString()));
}

TEST_F(ClientHandshake, AServerThatNeverAnswersExpectTheCallsOwnDeadline) {
  MakeServer();
  MakeChannel();
  PendingCall call(*channel_, "hello", std::chrono::milliseconds(50));
  EXPECT_THAT(call.Await(), Is(absl::StatusCode::kDeadlineExceeded, "it did not run"));
}

TEST_F(ClientHandshake, AServerThatVanishesBeforeItAnswersExpectUnavailable) {
  MakeServer();
  MakeChannel();
  PendingCall call(*channel_, "hello");
  peer_->AwaitRequest();
  peer_.reset();
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ClientHandshake, AServerThatVanishesRightAfterItAnsweredExpectUnavailable) {
  MakeServer();
  MakeChannel();
  PendingCall call(*channel_, "hello");
  peer_->AwaitRequest();
  peer_->Accept(EncodeHello(peer_->GoodHello()));
  peer_->Vanish();
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ClientHandshake, FailsAtOnceWhileItBacksOffAndSaysForHowLong) {
  MakeServer();
  ChannelOptions options;
  options.reconnect_backoff_min = std::chrono::seconds(60);
  options.reconnect_backoff_max = std::chrono::seconds(60);
  channel_ = CreateChannel(address_.ToString(), options);
  PendingCall call(*channel_, "hello");
  peer_->AwaitRequest();
  peer_->Reject({});
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kUnavailable);
  PendingCall next(*channel_, "next");
  EXPECT_THAT(next.Await(), Is(absl::StatusCode::kUnavailable, "the next attempt is made in"));
}

TEST_F(ClientHandshake, WaitForConnectedTellsWhatTheServerSaid) {
  MakeServer();
  MakeChannel();
  absl::Status status;
  std::thread waiter(
      [&] { status = channel_->WaitForConnected(std::chrono::milliseconds(10'000)); });
  peer_->AwaitRequest();
  peer_->Reject(EncodeRefusal({.reason = Refusal::Reason::kShuttingDown}));
  waiter.join();
  EXPECT_THAT(status, Is(absl::StatusCode::kUnavailable, "shutting down"));
}

TEST_F(ClientHandshake, WaitForConnectedEndsWhenTheServerBreaksTheProtocolBeforeItIsOpen) {
  MakeServer();
  MakeChannel();
  logs_.Allow("the peer broke the protocol");
  absl::Status status;
  std::thread waiter(
      [&] { status = channel_->WaitForConnected(std::chrono::milliseconds(10'000)); });
  peer_->AwaitRequest();
  peer_->Accept(EncodeHello(peer_->GoodHello()));
  peer_->AwaitEvent();
  peer_->Send(HexFrame("00"));
  waiter.join();
  // The client may have seen the hello first, or the frame.
  EXPECT_TRUE(status.ok() || absl::IsInternal(status)) << status;
}

TEST_F(ClientHandshake, WaitForConnectedGivesUpAfterItsTimeoutAndMayBeCalledAgain) {
  MakeServer();
  MakeChannel();
  EXPECT_THAT(channel_->WaitForConnected(std::chrono::milliseconds(20)),
              Is(absl::StatusCode::kDeadlineExceeded, "within 20 ms; it is still being tried"));
  std::thread waiter([&] {
    EXPECT_THAT(channel_->WaitForConnected(std::chrono::milliseconds(10'000)), IsOk());
  });
  peer_->AcceptAndOpen();
  waiter.join();
}

}  // namespace
}  // namespace verbena
