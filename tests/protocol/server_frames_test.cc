// SPDX-License-Identifier: Apache-2.0
//
// What a real server does with the frames of a client that is wrong, hostile, or gone.

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "verbena/tests/protocol/server_fixture.h"
#include "verbena/tests/support/faulty_device.h"

namespace verbena {
namespace {

class ServerFrames : public ServerProtocolTest {
 protected:
  // The server outlives the test's body.
  std::atomic<int> ran_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> go_on_{false};

  void ReceiveExpectClose(const Frame& frame, FrameDefect defect) {
    logs_.Allow("the peer broke the protocol");
    StartServer();
    OpenPeer().Send(Request(1, "open"));
    AwaitAnswer();  // Before it is open a server can't send a close.
    peer_->Send(frame);
    const Frame close = peer_->AwaitAnswer();
    ASSERT_EQ(KindOf(close), FrameKind::kClose);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).reason, CloseHeader::Reason::kProtocolError);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).detail, static_cast<uint32_t>(defect));
    peer_->AwaitDisconnected();
    EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
    EXPECT_EQ(server_->statistics().protocol_errors, 1u);
    EXPECT_EQ(server_->statistics().calls_started, 1u) << "only the good one";
    ExpectServesOthers();
  }
};

TEST_F(ServerFrames, ReceiveARequestExpectItsResponse) {
  StartServer();
  OpenPeer().Send(Request(0x1003, "hello"));
  const Answer answer = AwaitAnswer();
  EXPECT_EQ(answer.call_id, 0x1003u);
  EXPECT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.text, "hello");
}

TEST_F(ServerFrames, ReceiveAnEmptyMessageExpectAnEmptyOne) {
  StartServer();
  OpenPeer().Send(Request(1, ""));
  EXPECT_EQ(AwaitAnswer().text, "");
}

TEST_F(ServerFrames, ReceiveAnyCallIdExpectTheSame) {
  StartServer();
  OpenPeer();
  for (uint32_t id : {1u, 0x80000000u, 0xffffffffu, 5u, 5u}) {
    peer_->Send(Request(id, "x", kNoTimeout, 0));
    EXPECT_EQ(AwaitAnswer().call_id, id);
  }
}

TEST_F(ServerFrames, ReceiveAnUnknownMethodExpectUnimplemented) {
  StartServer();
  OpenPeer().Send(RequestFrame(9, 0xdeadbeef, "hello"));
  const Answer answer = AwaitAnswer();
  EXPECT_EQ(answer.call_id, 9u);
  EXPECT_THAT(answer.status, Is(absl::StatusCode::kUnimplemented, "no such service or method"));
}

TEST_F(ServerFrames, ReceiveGarbageForAMessageExpectInvalidArgumentAndTheMethodsName) {
  StartServer();
  OpenPeer().Send(Request(9, "\xff\xff"));
  EXPECT_THAT(AwaitAnswer().status,
              Is(absl::StatusCode::kInvalidArgument, "the request of test.Text/Call"));
  peer_->Send(Request(10, "good again"));
  EXPECT_EQ(AwaitAnswer().text, "good again");
}

TEST_F(ServerFrames, ReceiveNoTimeLeftExpectDeadlineExceeded) {
  StartServer();
  OpenPeer().Send(Request(9, "late", /*timeout_us=*/0));
  EXPECT_EQ(AwaitAnswer().status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(server_->statistics().calls_deadline_exceeded, 1u);
}

TEST_F(ServerFrames, ReceiveAResponseExpectWrongDirection) {
  ReceiveExpectClose(ResponseFrame(1, 0, "text"), FrameDefect::kWrongDirection);
}

TEST_F(ServerFrames, ReceiveCallIdZeroExpectCallId) {
  ReceiveExpectClose(Request(0, "text"), FrameDefect::kCallId);
}

TEST_F(ServerFrames, ReceiveAnUnknownKindExpectUnknownKind) {
  ReceiveExpectClose(HexFrame("ff 00 00 00 01 00 00 00"), FrameDefect::kUnknownKind);
}

TEST_F(ServerFrames, ReceiveTooManyCreditsExpectThatTheRequestDoesNotRun) {
  ReceiveExpectClose(Request(1, "text", kNoTimeout, 2), FrameDefect::kTooManyCredits);
}

TEST_F(ServerFrames, ReceiveGarbageBeforeItIsOpenExpectThatItDisconnects) {
  logs_.Allow("the peer broke the protocol");
  StartServer();
  for (int i = 0; i < 20; ++i) {
    OpenPeer({.ring_depth = 16}).Send(HexFrame("ff"));
    peer_->AwaitDisconnected();
  }
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  EXPECT_EQ(server_->statistics().protocol_errors, 20u);
}

TEST_F(ServerFrames, ReceiveCancelsOfCallsItDoesNotKnowExpectNothing) {
  StartServer();
  OpenPeer();
  for (uint32_t id : {1u, 7u, 0xffffffffu}) peer_->Send(CancelFrame(id));
  peer_->Send(Request(5, "after"));
  const Answer answer = AwaitAnswer();
  EXPECT_EQ(answer.call_id, 5u);
  peer_->Send(CancelFrame(5));
  peer_->Send(Request(6, "again"));
  EXPECT_EQ(AwaitAnswer().call_id, 6u);
}

TEST_F(ServerFrames, ReceiveACloseExpectThatTheConnectionIsFreed) {
  StartServer();
  OpenPeer().Send(CloseFrame(CloseHeader::Reason::kGoingAway));
  peer_->AwaitDisconnected();
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  EXPECT_EQ(server_->statistics().protocol_errors, 0u);
}

TEST_F(ServerFrames, AnAnswerThatFitsThePeersSlotComesInItAndALongerOneAsksForAZone) {
  StartServer([](ServerContext*, const std::string& request, std::string* response) {
    response->assign(static_cast<size_t>(std::stoi(request)), 'x');
    return absl::OkStatus();
  });
  OpenPeer({.slot_bytes = 512}).Send(Request(1, "496"));
  EXPECT_EQ(AwaitAnswer().text, std::string(496, 'x'));
  peer_->Send(Request(2, "497"));
  const Frame want = peer_->AwaitAnswer();
  ASSERT_EQ(KindOf(want), FrameKind::kWantZone);
  EXPECT_EQ(HeaderOf<WantZoneHeader>(want).frame.call_id, 2u);
  EXPECT_EQ(HeaderOf<WantZoneHeader>(want).bytes, 64u + 16u + 497u);
}

TEST_F(ServerFrames, AStatusMessageLongerThanASlotIsCut) {
  StartServer([](ServerContext*, const std::string&, std::string*) {
    return absl::AbortedError(std::string(100'000, 'm'));
  });
  OpenPeer().Send(Request(1, "x"));
  const Answer answer = AwaitAnswer();
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(answer.text, std::string(4096 - 16, 'm'));
}

TEST_F(ServerFrames, AStatusCodeThatIsNotCanonicalBecomesUnknown) {
  StartServer([](ServerContext*, const std::string&, std::string*) {
    return absl::Status(static_cast<absl::StatusCode>(999), "mine");
  });
  OpenPeer().Send(Request(1, "x"));
  EXPECT_THAT(AwaitAnswer().status, Is(absl::StatusCode::kUnknown, "mine"));
}

// ---- Credits ----

TEST_F(ServerFrames, APeerThatReturnsNoCreditsGetsAnswersUpToTheReserveAndTheRestInOrderLater) {
  StartServer([this](ServerContext*, const std::string& request, std::string* response) {
    ++ran_;
    *response = request;
    return absl::OkStatus();
  });
  OpenPeer({.ring_depth = 16, .posts_receives_again = true});
  for (uint32_t i = 1; i <= 100; ++i) peer_->Send(Request(i, absl::StrCat("n", i)));
  for (uint32_t i = 1; i <= 12; ++i) EXPECT_EQ(AwaitAnswer().call_id, i);
  EXPECT_FALSE(WaitUntil([&] { return ran_ > 12; }, std::chrono::milliseconds(50)))
      << "a request is not looked at before its response could be sent";
  uint32_t next = 13;
  while (next <= 100) {
    const uint32_t got = std::min(12u, 101 - next);
    // As many as came, grants included, so reported one by one.
    peer_->Send(GrantFrame(12));
    for (uint32_t i = 0; i < got; ++i) EXPECT_EQ(AwaitAnswer().call_id, next++);
  }
  EXPECT_EQ(peer_->receiver_not_ready(), 0u);
}

TEST_F(ServerFrames, ReceiveACancelOfARequestThatWaitsExpectThatItNeverRuns) {
  StartServer([this](ServerContext*, const std::string& request, std::string* response) {
    ++ran_;
    *response = request;
    return absl::OkStatus();
  });
  OpenPeer({.ring_depth = 16});
  for (uint32_t i = 1; i <= 15; ++i) peer_->Send(Request(i, "x"));
  for (uint32_t i = 1; i <= 12; ++i) EXPECT_EQ(AwaitAnswer().call_id, i);
  peer_->Send(CancelFrame(14));
  peer_->Send(GrantFrame(12));
  EXPECT_EQ(AwaitAnswer().call_id, 13u);
  EXPECT_EQ(AwaitAnswer().call_id, 15u);
  EXPECT_EQ(ran_, 14);
}

TEST_F(ServerFrames, APeerThatFillsTheRingAndVanishesIsFreed) {
  StartServer();
  OpenPeer({.ring_depth = 16});
  for (uint32_t i = 1; i <= 128; ++i) peer_->Send(Request(i, "x"));
  for (uint32_t i = 1; i <= 12; ++i) AwaitAnswer();
  EXPECT_EQ(peer_->receiver_not_ready(), 0u);
  peer_->Vanish();
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  ExpectServesOthers();
}

TEST_F(ServerFrames, APeerThatFillsTheRingAndStaysDoesNotKeepTheServerFromEnding) {
  StartServer();
  OpenPeer({.ring_depth = 16});
  for (uint32_t i = 1; i <= 128; ++i) peer_->Send(Request(i, "x"));
  for (uint32_t i = 1; i <= 12; ++i) AwaitAnswer();
  Shutdown();
}

// ---- Peers that vanish ----

// On a wire that takes its time.
TEST_F(ServerFrames, AServerThatEndsWaitsForItsCloseFrames) {
  FaultyDevice device(Must(CreateSoftDevice()));
  StartServer(nullptr, [&](ServerOptions& options) { options.devices = {&device}; });
  OpenPeer().Send(Request(1, "x"));
  EXPECT_EQ(AwaitAnswer().text, "x");
  device.set_sends_held(true);
  std::jthread ending([this] { Shutdown(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(peer_->FramesWaiting(), 0u);
  EXPECT_FALSE(peer_->disconnected());
  device.set_sends_held(false);
  EXPECT_EQ(peer_->AwaitAnswer(), CloseFrame(CloseHeader::Reason::kGoingAway));
}

TEST_F(ServerFrames, APeerThatVanishesAfterTheHandshakeIsFreed) {
  StartServer();
  OpenPeer().Vanish();
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  ExpectServesOthers();
}

TEST_F(ServerFrames, APeerThatVanishesAfterItsRequestsIsFreed) {
  StartServer();
  OpenPeer();
  for (uint32_t i = 1; i <= 50; ++i) peer_->Send(Request(i, std::string(i * 20, 'x')));
  peer_->Vanish();
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  ExpectServesOthers();
}

TEST_F(ServerFrames, APeerThatVanishesWhileItsHandlerRunsIsFreed) {
  StartServer([this](ServerContext*, const std::string& request, std::string* response) {
    running_ = true;
    WaitUntil([&] { return request != "wait" || go_on_; });
    *response = request;
    return absl::OkStatus();
  });
  OpenPeer().Send(Request(1, "wait"));
  ASSERT_TRUE(WaitUntil([&] { return running_.load(); }));
  peer_->Vanish();
  go_on_ = true;
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  ExpectServesOthers();
}

TEST_F(ServerFrames, ManyPeersThatComeSendGarbageAndGoLeaveNothing) {
  logs_.Allow("the peer broke the protocol");
  StartServer();
  for (int i = 0; i < 30; ++i) {
    OpenPeer({.ring_depth = 16});
    if (i % 3 == 0) peer_->Send(HexFrame("00"));
    if (i % 3 == 1) peer_->Send(Request(1, "x"));
    peer_->Vanish();
    peer_.reset();
  }
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  ExpectServesOthers();
}

}  // namespace
}  // namespace verbena
