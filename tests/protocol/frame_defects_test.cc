// SPDX-License-Identifier: Apache-2.0
//
// What an endpoint does with a frame that breaks the protocol: it tells the peer the defect in a
// close frame, tells the layer above, and sends nothing more.

#include <string>

#include "verbena/tests/protocol/endpoint_fixture.h"
#include "verbena/tests/support/status_matchers.h"

namespace verbena {
namespace {

class FrameDefects : public EndpointTest {
 protected:
  // Receive `frame`; expect a close frame with `defect`, and the end with its name.
  void ReceiveExpectClose(const Frame& frame, FrameDefect defect) {
    logs_.Allow("the peer broke the protocol");
    peer().Send(frame);
    const std::string name(FrameDefectName(defect));
    EXPECT_THAT(AwaitClosed(),
                Is(absl::StatusCode::kInternal, "the peer broke the protocol: " + name));
    EXPECT_TRUE(handler().frames.empty());
    const Frame close = peer().AwaitFrame();
    ASSERT_EQ(close.size(), sizeof(CloseHeader));
    ASSERT_EQ(KindOf(close), FrameKind::kClose);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).reason, CloseHeader::Reason::kProtocolError);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).detail, static_cast<uint32_t>(defect));
    EXPECT_FALSE(under_test_->TrySend(RequestFrame(1, 2, "late")));
    EXPECT_EQ(logs_.Count(name), 1) << "the first detector logs, once";
    under_test_->Bury();
    peer().set_pump(nullptr);
    peer().AwaitDisconnected();
    EXPECT_EQ(peer().FramesWaiting(), 0u) << "a frame behind the close";
    EXPECT_EQ(peer().receiver_not_ready(), 0u);
  }
};

TEST_F(FrameDefects, ReceiveAnEmptyFrameExpectShort) {
  Open();
  ReceiveExpectClose({}, FrameDefect::kShort);
}

TEST_F(FrameDefects, ReceiveSevenBytesExpectShort) {
  Open();
  ReceiveExpectClose(HexFrame("01 00 00 00 01 00 00"), FrameDefect::kShort);
}

TEST_F(FrameDefects, ReceiveARequestWithoutItsMethodExpectShort) {
  Open();
  Frame frame = RequestFrame(1, 2, "");
  frame.pop_back();
  ReceiveExpectClose(frame, FrameDefect::kShort);
}

TEST_F(FrameDefects, ReceiveAResponseCutInItsHeaderExpectShort) {
  Open();
  ReceiveExpectClose(HexFrame("02 00 00 00 01 00 00 00 00 00 00 00"), FrameDefect::kShort);
}

TEST_F(FrameDefects, ReceiveKindZeroExpectUnknownKind) {
  Open();
  ReceiveExpectClose(HexFrame("00 00 00 00 00 00 00 00"), FrameDefect::kUnknownKind);
}

TEST_F(FrameDefects, ReceiveKindElevenExpectUnknownKind) {
  Open();
  ReceiveExpectClose(HexFrame("0b 00 00 00 01 00 00 00"), FrameDefect::kUnknownKind);
}

TEST_F(FrameDefects, ReceiveFlagsExpectReservedBits) {
  Open();
  Frame frame = RequestFrame(1, 2, "text");
  frame[1] = std::byte{4};
  ReceiveExpectClose(frame, FrameDefect::kReservedBits);
}

TEST_F(FrameDefects, ReceiveReservedBitsOfARequestExpectReservedBits) {
  Open();
  Frame frame = RequestFrame(1, 2, "text");
  frame[20] = std::byte{1};
  ReceiveExpectClose(frame, FrameDefect::kReservedBits);
}

TEST_F(FrameDefects, ReceiveCallIdZeroExpectCallId) {
  Open();
  ReceiveExpectClose(RequestFrame(0, 2, "text"), FrameDefect::kCallId);
}

TEST_F(FrameDefects, ReceiveAGrantWithACallIdExpectCallId) {
  Open();
  ReceiveExpectClose(HexFrame("04 00 00 00 01 00 00 00"), FrameDefect::kCallId);
}

TEST_F(FrameDefects, ReceiveStatusCode17ExpectStatusCode) {
  Open();
  ReceiveExpectClose(ResponseFrame(1, 17, ""), FrameDefect::kStatusCode);
}

TEST_F(FrameDefects, ReceiveACreditThatWasNeverSpentExpectTooManyCredits) {
  Open();
  ReceiveExpectClose(GrantFrame(1), FrameDefect::kTooManyCredits);
}

TEST_F(FrameDefects, ReceiveTooManyCreditsInARequestExpectTooManyCreditsAndNoRequest) {
  Open();
  ReceiveExpectClose(RequestFrame(1, 2, "text", kNoTimeout, 0xffff), FrameDefect::kTooManyCredits);
}

TEST_F(FrameDefects, ReceiveBytesBehindACancelExpectTrailingBytes) {
  Open();
  ReceiveExpectClose(HexFrame("03 00 00 00 01 00 00 00 00"), FrameDefect::kTrailingBytes);
}

TEST_F(FrameDefects, ReceiveBytesBehindACloseExpectTrailingBytes) {
  Open();
  ReceiveExpectClose(HexFrame("05 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00"),
                     FrameDefect::kTrailingBytes);
}

TEST_F(FrameDefects, ReceiveOneCreditTooManyExpectTooManyCredits) {
  Open();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, "text")));
  for (int i = 0; i < 3; ++i) peer().AwaitFrame();
  ReceiveExpectClose(GrantFrame(4), FrameDefect::kTooManyCredits);
}

TEST_F(FrameDefects, ReceiveAsManyCreditsAsWereSpentExpectNothing) {
  Open();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, "text")));
  for (int i = 0; i < 3; ++i) peer().AwaitFrame();
  peer().Send(GrantFrame(3));
  peer().Send(RequestFrame(7, 8, "next"));
  AwaitFrames(1);
  EXPECT_FALSE(handler().closed);
}

TEST_F(FrameDefects, ReceiveTwoBadFramesExpectOneClose) {
  Open();
  peer().Send(HexFrame("0b 00 00 00 00 00 00 00"));
  ReceiveExpectClose(HexFrame("0c 00 00 00 00 00 00 00"), FrameDefect::kUnknownKind);
}

}  // namespace
}  // namespace verbena
