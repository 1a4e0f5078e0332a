// SPDX-License-Identifier: Apache-2.0
//
// What a real channel does with the frames of a server that is wrong, hostile, silent, or gone.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/tests/protocol/client_fixture.h"

namespace verbena {
namespace {

class ClientFrames : public ClientProtocolTest {
 protected:
  // Opens with a call, sends `frame`; expects the call to end INTERNAL and a close with `defect`.
  void ReceiveExpectClose(const std::function<Frame(uint32_t call_id)>& frame, FrameDefect defect) {
    logs_.Allow("the peer broke the protocol");
    MakeServer();
    MakeChannel();
    std::unique_ptr<PendingCall> call;
    const uint32_t id = OpenWithCall(call, "hello");
    peer_->Send(frame(id));
    const std::string name(FrameDefectName(defect));
    EXPECT_THAT(call->Await(), Is(absl::StatusCode::kInternal, name));
    EXPECT_THAT(call->Await(), Is(absl::StatusCode::kInternal, "may have run"));
    const Frame close = peer_->AwaitAnswer();
    ASSERT_EQ(KindOf(close), FrameKind::kClose);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).detail, static_cast<uint32_t>(defect));
    peer_->AwaitDisconnected();
    ExpectConnectsAgain();
  }
  void ExpectConnectsAgain() {
    peer_->Renew();
    std::unique_ptr<PendingCall> call;
    const uint32_t id = OpenWithCall(call, "again");
    peer_->Send(ResponseFrame(id, 0, "welcome"));
    EXPECT_THAT(call->Await(), IsOk());
  }
  // A further call on the open connection is answered.
  void ExpectStillWorks() {
    PendingCall call(*channel_, "still there?");
    peer_->Send(ResponseFrame(AwaitRequest().frame.call_id, 0, "yes"));
    EXPECT_THAT(call.Await(), IsOk());
    EXPECT_EQ(call.response(), "yes");
  }
};

TEST_F(ClientFrames, SendsTheRequestOfTheDocumentation) {
  MakeServer();
  MakeChannel();
  PendingCall call(*channel_, "text");
  peer_->AcceptAndOpen();
  const Frame frame = peer_->AwaitFrame();
  const auto header = HeaderOf<RequestHeader>(frame);
  EXPECT_EQ(header.frame.flags, 0u);
  EXPECT_EQ(header.frame.credits, 0u);
  EXPECT_NE(header.frame.call_id, 0u);
  EXPECT_EQ(header.method_id, 0x2b6e1d8587eaf687u) << "FNV-1a of test.Text/Call";
  EXPECT_EQ(header.timeout_us, kNoTimeout);
  EXPECT_EQ(header.reserved, 0u);
  EXPECT_EQ(PayloadOf<RequestHeader>(frame), "text");
  peer_->Send(ResponseFrame(header.frame.call_id, 0, "answer"));
  EXPECT_THAT(call.Await(), IsOk());
  EXPECT_EQ(call.response(), "answer");
}

TEST_F(ClientFrames, SendsTheTimeThatIsLeft) {
  MakeServer();
  MakeChannel();
  PendingCall call(*channel_, "text", std::chrono::milliseconds(60'000));
  peer_->AcceptAndOpen();
  const RequestHeader header = AwaitRequest();
  EXPECT_LE(header.timeout_us, 60'000'000u);
  EXPECT_GT(header.timeout_us, 30'000'000u);
  peer_->Send(ResponseFrame(header.frame.call_id, 0, ""));
  EXPECT_THAT(call.Await(), IsOk());
  // 100 minutes do not fit in 32 bits of microseconds: none is sent, the client's own timer rules.
  PendingCall longer(*channel_, "text", std::chrono::milliseconds(6'000'000));
  const RequestHeader second = AwaitRequest();
  EXPECT_EQ(second.timeout_us, kNoTimeout);
  peer_->Send(ResponseFrame(second.frame.call_id, 0, ""));
  EXPECT_THAT(longer.Await(), IsOk());
}

// ---- Bad responses ----

TEST_F(ClientFrames, ReceiveARequestExpectWrongDirection) {
  ReceiveExpectClose([](uint32_t id) { return RequestFrame(id, 1, "turned round"); },
                     FrameDefect::kWrongDirection);
}

TEST_F(ClientFrames, ReceiveACancelExpectWrongDirection) {
  ReceiveExpectClose([](uint32_t id) { return CancelFrame(id); }, FrameDefect::kWrongDirection);
}

TEST_F(ClientFrames, ReceiveStatusCode17ExpectStatusCode) {
  ReceiveExpectClose([](uint32_t id) { return ResponseFrame(id, 17, ""); },
                     FrameDefect::kStatusCode);
}

TEST_F(ClientFrames, ReceiveCallIdZeroExpectCallId) {
  ReceiveExpectClose([](uint32_t) { return ResponseFrame(0, 0, ""); }, FrameDefect::kCallId);
}

TEST_F(ClientFrames, ReceiveTooManyCreditsExpectThatTheResponseDoesNotCount) {
  ReceiveExpectClose([](uint32_t id) { return ResponseFrame(id, 0, "x", 100); },
                     FrameDefect::kTooManyCredits);
}

TEST_F(ClientFrames, ReceiveAResponseThatIsCutExpectShort) {
  ReceiveExpectClose([](uint32_t) { return HexFrame("02 00 00 00 01 00 00 00"); },
                     FrameDefect::kShort);
}

TEST_F(ClientFrames, ReceiveResponsesToCallsThatAreNotExpectThatTheyAreDropped) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  const uint32_t id = OpenWithCall(call, "hello");
  for (uint32_t wrong :
       {id ^ 1u, id + 1023, id + 1024, id + 4095, id + 4096, id - 4096, ~id, 0xffffffffu, 1u}) {
    if (wrong == 0) continue;
    peer_->Send(ResponseFrame(wrong, 0, "wrong"));
  }
  peer_->Send(ResponseFrame(id, 0, "right"));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_EQ(call->response(), "right");
}

TEST_F(ClientFrames, ReceiveAResponseTwiceExpectThatTheSecondIsDropped) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  const uint32_t id = OpenWithCall(call, "hello");
  peer_->Send(ResponseFrame(id, 0, "first"));
  peer_->Send(ResponseFrame(id, 5, "second"));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_EQ(call->response(), "first");
  ExpectStillWorks();
  EXPECT_EQ(channel_->statistics().calls_ok, 2u);
  EXPECT_EQ(channel_->statistics().calls_failed, 0u);
}

TEST_F(ClientFrames, ReceiveGarbageForAMessageExpectInternalAndTheMethodsName) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  const uint32_t id = OpenWithCall(call, "hello");
  peer_->Send(ResponseFrame(id, 0, "\xff"));
  EXPECT_THAT(call->Await(),
              Is(absl::StatusCode::kInternal, "the response of test.Text/Call is not a message"));
  ExpectStillWorks();
}

TEST_F(ClientFrames, ReceiveEachStatusExpectItWithItsMessage) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> first;
  peer_->Send(ResponseFrame(OpenWithCall(first, "hello"), 0, ""));
  for (uint32_t code = 1; code <= 16; ++code) {
    PendingCall call(*channel_, "hello");
    peer_->Send(ResponseFrame(AwaitRequest().frame.call_id, code, absl::StrCat("code ", code), 1));
    EXPECT_THAT(call.Await(), Is(static_cast<absl::StatusCode>(code), absl::StrCat("code ", code)));
  }
  PendingCall silent(*channel_, "hello");
  peer_->Send(ResponseFrame(AwaitRequest().frame.call_id, 5, ""));
  EXPECT_EQ(silent.Await(), absl::NotFoundError(""));
}

// ---- Silence, credits and deadlines ----

TEST_F(ClientFrames, AServerThatNeverAnswersExpectTheDeadlineAndACancelAndDropTheLateAnswer) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  const uint32_t id = OpenWithCall(call, "hello", std::chrono::milliseconds(50));
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kDeadlineExceeded, "the call may have run"));
  EXPECT_EQ(peer_->AwaitAnswer(), CancelFrame(id));
  PendingCall next(*channel_, "next");
  const uint32_t next_id = AwaitRequest().frame.call_id;
  peer_->Send(ResponseFrame(id, 0, "late"));
  peer_->Send(ResponseFrame(next_id, 0, "in time"));
  EXPECT_THAT(next.Await(), IsOk());
  EXPECT_EQ(next.response(), "in time");
}

TEST_F(ClientFrames, TryCancelExpectACancelFrame) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  const uint32_t id = OpenWithCall(call, "hello");
  call->context().TryCancel();
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kCancelled, "cancelled"));
  EXPECT_EQ(peer_->AwaitAnswer(), CancelFrame(id));
  ExpectStillWorks();
}

TEST_F(ClientFrames, AServerThatReturnsNoCreditsExpectThatCallsWaitAndEndWithTheirDeadline) {
  MakeServer({.ring_depth = 16, .posts_receives_again = false});
  MakeChannel();
  std::vector<std::unique_ptr<PendingCall>> calls(1);
  OpenWithCall(calls[0], "0");
  for (int i = 1; i < 12; ++i) {
    calls.push_back(std::make_unique<PendingCall>(*channel_, absl::StrCat(i)));
  }
  std::vector<uint32_t> ids;
  for (int i = 1; i < 12; ++i) ids.push_back(AwaitRequest().frame.call_id);
  PendingCall waiting(*channel_, "waits", std::chrono::milliseconds(50));
  EXPECT_THAT(waiting.Await(), Is(absl::StatusCode::kDeadlineExceeded,
                                  "before the call could be sent; it did not run"));
  PendingCall cancelled(*channel_, "waits too");
  cancelled.context().TryCancel();
  EXPECT_THAT(cancelled.Await(), Is(absl::StatusCode::kCancelled, "cancelled"));
  EXPECT_EQ(peer_->FramesWaiting(), 0u);
  // One call that is cancelled while sent may use the cancel's credit; a second one has none.
  calls[0]->context().TryCancel();
  calls[1]->context().TryCancel();
  calls[0]->Await();
  calls[1]->Await();
  EXPECT_EQ(KindOf(peer_->AwaitFrame()), FrameKind::kCancel);
  EXPECT_EQ(peer_->FramesWaiting(), 0u);
  peer_->Vanish();
  for (auto& call : calls) call->Await();
}

TEST_F(ClientFrames, CallsThatWaitForCreditsAreSentInOrderWhenTheyCome) {
  MakeServer({.ring_depth = 16});
  MakeChannel();
  std::vector<std::unique_ptr<PendingCall>> calls(1);
  uint32_t id = OpenWithCall(calls[0], "0");
  for (int i = 1; i < 100; ++i) {
    calls.push_back(std::make_unique<PendingCall>(*channel_, absl::StrCat(i)));
  }
  for (int i = 0; i < 100; ++i) {
    peer_->Send(ResponseFrame(id, 0, absl::StrCat("to ", i), /*credits=*/1));
    if (i == 99) break;
    const Frame frame = peer_->AwaitAnswer();
    EXPECT_EQ(PayloadOf<RequestHeader>(frame), absl::StrCat(i + 1));
    id = HeaderOf<RequestHeader>(frame).frame.call_id;
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(calls[i]->Await(), IsOk());
    EXPECT_EQ(calls[i]->response(), absl::StrCat("to ", i));
  }
  EXPECT_EQ(channel_->statistics().calls_ok, 100u);
}

TEST_F(ClientFrames, ARequestThatFitsTheServersSlotGoesInItAndALongerOneAsksForAZone) {
  MakeServer({.slot_bytes = 512});
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  const uint32_t id = OpenWithCall(call, "short");
  PendingCall too_long(*channel_, std::string(489, 'x'));
  const Frame want = peer_->AwaitAnswer();
  ASSERT_EQ(KindOf(want), FrameKind::kWantZone);
  EXPECT_EQ(HeaderOf<WantZoneHeader>(want).bytes, 64u + 24u + 489u);
  peer_->Send(ResponseFrame(HeaderOf<WantZoneHeader>(want).frame.call_id, 8, "none is free"));
  EXPECT_THAT(too_long.Await(), Is(absl::StatusCode::kResourceExhausted, "none is free"));
  PendingCall fits(*channel_, std::string(488, 'x'));
  const uint32_t fits_id = AwaitRequest().frame.call_id;
  peer_->Send(ResponseFrame(id, 0, ""));
  peer_->Send(ResponseFrame(fits_id, 0, ""));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_THAT(fits.Await(), IsOk());
}

// ---- The end ----

TEST_F(ClientFrames, ReceiveACloseExpectUnavailableAndANewConnection) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  OpenWithCall(call, "hello");
  peer_->Send(CloseFrame(CloseHeader::Reason::kGoingAway));
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kUnavailable,
                                "the peer closed the connection; the call was sent and may have "
                                "run"));
  peer_->AwaitDisconnected();
  ExpectConnectsAgain();
  EXPECT_EQ(channel_->statistics().connects, 2u);
}

TEST_F(ClientFrames, TheServerVanishesAfterARequestExpectUnavailableThatSaysItMayHaveRun) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  OpenWithCall(call, "hello");
  peer_->Vanish();
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kUnavailable, "may have run"));
  ExpectConnectsAgain();
}

TEST_F(ClientFrames, TheServerVanishesExpectThatCallsNotSentSaySo) {
  MakeServer({.ring_depth = 16});
  MakeChannel();
  std::vector<std::unique_ptr<PendingCall>> calls(1);
  OpenWithCall(calls[0], "0");
  for (int i = 1; i < 20; ++i) {
    calls.push_back(std::make_unique<PendingCall>(*channel_, absl::StrCat(i)));
  }
  for (int i = 1; i < 12; ++i) AwaitRequest();
  // A call that starts after the end belongs to the next connection.
  ASSERT_TRUE(WaitUntil([this] { return channel_->statistics().calls_started == 20; }));
  peer_->Vanish();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(calls[i]->Await(),
                Is(absl::StatusCode::kUnavailable, i < 12 ? "may have run" : "did not run"))
        << i;
  }
  ExpectConnectsAgain();
}

TEST_F(ClientFrames, TheServerAnswersAndVanishesExpectTheAnswer) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  const uint32_t id = OpenWithCall(call, "hello");
  peer_->Send(ResponseFrame(id, 0, "goodbye"));
  peer_->Disconnect();
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_EQ(call->response(), "goodbye");
  // Until the channel has noticed, a call goes to the connection that is gone.
  EXPECT_TRUE(WaitUntil([this] { return channel_->statistics().disconnects == 1; }));
  ExpectConnectsAgain();
}

TEST_F(ClientFrames, TheChannelEndsWithAFrameThatSaysSo) {
  MakeServer();
  MakeChannel();
  std::unique_ptr<PendingCall> call;
  OpenWithCall(call, "hello");
  std::thread ending([this] { channel_.reset(); });
  EXPECT_EQ(peer_->AwaitAnswer(), CloseFrame(CloseHeader::Reason::kGoingAway));
  peer_->AwaitDisconnected();
  ending.join();
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kCancelled, "the channel was destroyed"));
}

}  // namespace
}  // namespace verbena
