// SPDX-License-Identifier: Apache-2.0
//
// The end of an endpoint: orderly, broken, or with a peer that is gone. In every case the layer
// above is told once, and the endpoint drains (the fixture buries it and waits for that).

#include <gtest/gtest.h>

#include <string>

#include "verbena/tests/protocol/endpoint_fixture.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/status_matchers.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {
namespace {

class Endings : public EndpointTest {
 protected:
  // As many as it may, unpolled, of both kinds.
  void FillTheSendQueue() {
    for (int i = 0; under_test_->TrySend(RequestFrame(1, 2, std::string(i % 2 * 2000, 'x'))); ++i) {
      ASSERT_LT(i, 1000);
    }
    endpoint().Service();
  }
};

// iWARP's kernel flushes the pair of a connection that is refused before the refusal can be taken.
TEST(ConnectingEndpoint, LeavesItToTheConnectionManagerToSayWhyItFlushes) {
  const std::unique_ptr<Device> device = Must(CreateSoftDevice());
  EndpointUnderTest side(*device, {});
  side.endpoint().queue_pair().MoveToError();
  for (int step = 0; step < 100; ++step) side.Step();
  EXPECT_FALSE(side.handler().closed);
  side.endpoint().Fail(absl::UnavailableError("refused"));
  EXPECT_THAT(*side.handler().closed, Is(absl::StatusCode::kUnavailable, "refused"));
}

TEST_F(Endings, ReceiveAnOrderlyCloseExpectUnavailable) {
  Open();
  peer().Send(CloseFrame(CloseHeader::Reason::kGoingAway));
  EXPECT_THAT(AwaitClosed(),
              Is(absl::StatusCode::kUnavailable, "the peer closed the connection"));
}

TEST_F(Endings, ReceiveACloseWithAnUnknownReasonExpectUnavailable) {
  Open();
  peer().Send(CloseFrame(static_cast<CloseHeader::Reason>(99)));
  EXPECT_THAT(AwaitClosed(),
              Is(absl::StatusCode::kUnavailable, "the peer closed the connection"));
}

TEST_F(Endings, ReceiveACloseForAProtocolErrorExpectItsName) {
  Open();
  peer().Send(CloseFrame(CloseHeader::Reason::kProtocolError,
                         static_cast<uint32_t>(FrameDefect::kCallId)));
  EXPECT_THAT(AwaitClosed(), Is(absl::StatusCode::kInternal,
                                "for a protocol error of this side: bad call id"));
}

TEST_F(Endings, ReceiveACloseWithAnUnknownDefectExpectThatItSaysSo) {
  Open();
  peer().Send(CloseFrame(CloseHeader::Reason::kProtocolError, 0xffffffff));
  EXPECT_THAT(AwaitClosed(), Is(absl::StatusCode::kInternal, "unknown defect"));
}

TEST_F(Endings, CloseSendsACloseFrameAndThenEnds) {
  Open();
  endpoint().Close();
  EXPECT_THAT(AwaitClosed(),
              Is(absl::StatusCode::kUnavailable, "this side closed the connection"));
  EXPECT_EQ(peer().AwaitFrame(), CloseFrame(CloseHeader::Reason::kGoingAway));
}

TEST_F(Endings, CloseSendsWhatWasCommittedFirst) {
  Open();
  EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, "last words")));
  endpoint().Close();
  EXPECT_EQ(peer().AwaitFrame(), RequestFrame(1, 2, "last words"));
  EXPECT_EQ(KindOf(peer().AwaitFrame()), FrameKind::kClose);
  EXPECT_FALSE(AwaitClosed().ok());
}

TEST_F(Endings, CloseEndsThoughNoCreditIsLeftForTheCloseFrame) {
  Open({}, {.ring_depth = 16, .posts_receives_again = false});
  while (under_test_->TrySend(RequestFrame(1, 2, "x"), CreditClass::kClose)) StepQuietly();
  endpoint().Close();
  EXPECT_THAT(AwaitClosed(),
              Is(absl::StatusCode::kUnavailable, "this side closed the connection"));
}

TEST_F(Endings, CloseTwiceIsTheSameAsOnce) {
  Open();
  endpoint().Close();
  endpoint().Close();
  EXPECT_THAT(AwaitClosed(),
              Is(absl::StatusCode::kUnavailable, "this side closed the connection"));
}

TEST_F(Endings, FailTellsTheReasonAndDrainsWhatIsOutstanding) {
  Open();
  FillTheSendQueue();
  endpoint().Fail(absl::DataLossError("because"));
  EXPECT_THAT(AwaitClosed(), Is(absl::StatusCode::kDataLoss, "because"));
  EXPECT_FALSE(under_test_->TrySend(RequestFrame(1, 2, "late")));
  under_test_->Bury();
}

TEST_F(Endings, FailDropsWhatWasCommittedAndNotPosted) {
  Open({.post_batch_max = 32});
  endpoint().batching = true;  // As within a batch of completions.
  EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, "a")));
  EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, std::string(3000, 'b'))));
  endpoint().Fail(absl::DataLossError("because"));
  under_test_->Bury();
  peer().set_pump(nullptr);
  peer().AwaitDisconnected();
  EXPECT_EQ(peer().FramesWaiting(), 0u);
}

TEST_F(Endings, FailTwiceTellsTheFirstReason) {
  Open();
  endpoint().Fail(absl::DataLossError("first"));
  endpoint().Fail(absl::DataLossError("second"));
  EXPECT_THAT(AwaitClosed(), Is(absl::StatusCode::kDataLoss, "first"));
}

TEST(EndingWithoutAPeer, AnEndpointThatNeverConnectedDrains) {
  const LogGuard logs;
  auto device = Must(CreateSoftDevice());
  EndpointUnderTest alone(*device, {});
  alone.Bury();
  EXPECT_EQ(alone.handler().closed, std::nullopt) << "Bury detaches the handler first";
}

TEST(EndingWithoutAPeer, AnEndpointThatStillConnectsDrains) {
  const LogGuard logs;
  auto device = Must(CreateSoftDevice());
  EndpointUnderTest alone(*device, {});
  alone.Connect(FreshAddress());
  alone.Bury();
}

TEST_F(Endings, ThePeerVanishesExpectUnavailable) {
  Open();
  peer().Vanish();
  EXPECT_EQ(AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Endings, ThePeerDisconnectsExpectUnavailable) {
  Open();
  peer().Disconnect();
  EXPECT_EQ(AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Endings, ThePeerVanishesWithSendsOnTheirWayToIt) {
  Open({}, {.ring_depth = 64});
  FillTheSendQueue();
  peer().Vanish();
  EXPECT_EQ(AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Endings, DeliversWhatThePeerSentBeforeItVanished) {
  Open();
  for (uint32_t i = 1; i <= 10; ++i) peer().Send(RequestFrame(i, 2, "before the end"));
  peer().Disconnect();
  EXPECT_FALSE(AwaitClosed().ok());
  EXPECT_EQ(handler().frames.size(), 10u);
}

// Then no receive is left to flush, and nothing is outstanding whose completion could tell.
TEST_F(Endings, ThePeerVanishesWhenEveryReceiveIsKept) {
  Open({.ring_depth = 16}, {.ring_depth = 16});
  handler().keeps = true;
  for (uint32_t i = 1; i <= 16; ++i) peer().Send(RequestFrame(i, 2, "kept"));
  AwaitFrames(16);
  peer().Vanish();
  EXPECT_EQ(AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Endings, ThePeerFillsTheRingAndVanishesBeforeItWasRead) {
  Open({.ring_depth = 16}, {.ring_depth = 16});
  handler().keeps = true;
  peer().set_pump(nullptr);
  for (uint32_t i = 1; i <= 16; ++i) peer().Send(RequestFrame(i, 2, "kept"));
  peer().Vanish();
  peer().set_pump([this] { under_test_->Step(); });
  EXPECT_EQ(AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Endings, ThePeerVanishesWhileTheCloseFrameIsOnItsWay) {
  Open();
  endpoint().Close();
  peer().Vanish();
  EXPECT_THAT(AwaitClosed(),
              Is(absl::StatusCode::kUnavailable, "this side closed the connection"));
}

TEST_F(Endings, BothCloseAtOnce) {
  Open();
  endpoint().Close();
  peer().Send(CloseFrame(CloseHeader::Reason::kGoingAway));
  EXPECT_EQ(AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Endings, TheHandlerMayFindADefectExpectACloseThatNamesIt) {
  Open();
  peer().Send(ResponseFrame(1, 0, "wrong way"));
  AwaitFrames(1);
  logs_.Allow("a frame that only the other side may send");
  endpoint().FailProtocol(FrameDefect::kWrongDirection);
  EXPECT_THAT(AwaitClosed(), Is(absl::StatusCode::kInternal, "only the other side may send"));
  EXPECT_EQ(HeaderOf<CloseHeader>(peer().AwaitFrame()).detail, 8u);
}

}  // namespace
}  // namespace verbena
