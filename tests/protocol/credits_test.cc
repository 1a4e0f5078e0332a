// SPDX-License-Identifier: Apache-2.0
//
// Credits of a real endpoint against a peer that is generous, mean, or only listens.

#include <gtest/gtest.h>

#include <string>

#include "verbena/tests/protocol/endpoint_fixture.h"
#include "verbena/tests/support/must.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {
namespace {

class Credits : public EndpointTest {
 protected:
  uint32_t SendAll(CreditClass credit_class = CreditClass::kData) {
    uint32_t sent = 0;
    while (under_test_->TrySend(RequestFrame(1, 2, "x"), credit_class)) {
      ++sent;
      StepQuietly();  // The send queue is never what is full.
    }
    return sent;
  }
};

// A client may send the moment that it is connected, before the server has taken its event. Half a
// ring of 16 is when a grant is due.
TEST_F(Credits, ReceiveHalfARingBeforeTheEndpointOpensExpectTheGrantAfterIt) {
  device_ = Must(CreateSoftDevice());
  peer_device_ = Must(CreateSoftDevice());
  under_test_ = std::make_unique<EndpointUnderTest>(*device_, EndpointOptions{.ring_depth = 16});
  under_test_->HoldOpen();
  peer_ = std::make_unique<RawPeer>(*peer_device_);
  peer_->set_pump([this] { under_test_->Step(); });
  const Address address = FreshAddress();
  under_test_->Listen(address);
  peer_->ConnectAndOpen(address);
  for (uint32_t id = 1; id <= 8; ++id) peer_->Send(RequestFrame(id, 2, "early"));
  AwaitFrames(8);
  StepUntil([this] { return under_test_->open_held(); }, "the established event");
  EXPECT_EQ(peer_->FramesWaiting(), 0u);
  under_test_->OpenNow();
  const Frame grant = peer_->AwaitFrame();
  ASSERT_EQ(KindOf(grant), FrameKind::kGrant);
  EXPECT_EQ(HeaderOf<FrameHeader>(grant).credits, 8u);
}

TEST_F(Credits, SendsUpToTheReserveToAPeerThatReturnsNone) {
  Open({}, {.ring_depth = 16, .posts_receives_again = false});
  EXPECT_EQ(SendAll(), 12u);
  EXPECT_FALSE(endpoint().CanSend());
  endpoint().WantWritable();
  StepQuietly();
  EXPECT_EQ(handler().writable, 0);
  EXPECT_EQ(SendAll(CreditClass::kCancel), 1u);
  EXPECT_EQ(SendAll(CreditClass::kGrant), 2u);
  EXPECT_EQ(SendAll(CreditClass::kClose), 1u);
  EXPECT_EQ(under_test_->receiver_not_ready(), 0u);
}

TEST_F(Credits, TellsOnceThatItIsWritableWhenCreditsCome) {
  Open({}, {.ring_depth = 16});
  EXPECT_EQ(SendAll(), 12u);
  endpoint().WantWritable();
  StepQuietly();
  EXPECT_EQ(handler().writable, 0);
  peer().Send(GrantFrame(2));
  StepUntil([this] { return handler().writable > 0; }, "OnWritable");
  StepQuietly();
  EXPECT_EQ(handler().writable, 1) << "asked once, told once";
  EXPECT_EQ(SendAll(), 2u);
}

TEST_F(Credits, TakesCreditsFromTheHeaderOfAnyFrame) {
  Open({}, {.ring_depth = 16});
  EXPECT_EQ(SendAll(), 12u);
  peer().Send(RequestFrame(1, 2, "with credits", kNoTimeout, 5));
  AwaitFrames(1);
  EXPECT_EQ(SendAll(), 5u);
  peer().Send(ResponseFrame(1, 0, "with credits", 12));
  AwaitFrames(2);
  EXPECT_EQ(SendAll(), 12u);
}

TEST_F(Credits, GrantsHalfItsRingToAPeerThatOnlySends) {
  Open({.ring_depth = 16});
  for (int i = 0; i < 7; ++i) peer().Send(RequestFrame(1, 2, "x"));
  AwaitFrames(7);
  StepQuietly();
  EXPECT_EQ(peer().FramesWaiting(), 0u);
  // One or two wait to be posted again together, and are not reported before they are.
  for (int i = 0; i < 3; ++i) peer().Send(RequestFrame(1, 2, "x"));
  const Frame grant = peer().AwaitFrame();
  EXPECT_EQ(KindOf(grant), FrameKind::kGrant);
  EXPECT_GE(HeaderOf<FrameHeader>(grant).credits, 8u);
  EXPECT_LE(HeaderOf<FrameHeader>(grant).credits, 10u);
}

TEST_F(Credits, ReportsThemInTheHeaderOfWhatItSendsAnyway) {
  Open({.ring_depth = 16});
  for (int i = 0; i < 6; ++i) peer().Send(RequestFrame(1, 2, "x"));
  AwaitFrames(6);
  EXPECT_TRUE(under_test_->TrySend(ResponseFrame(1, 0, "y")));
  EXPECT_EQ(HeaderOf<FrameHeader>(peer().AwaitFrame()).credits, 6u);
}

TEST_F(Credits, LetsAThousandOneWayMessagesFlowThroughARingOfSixteen) {
  Open({.ring_depth = 16}, {.ring_depth = 16});
  int credits = 16;
  int grants = 0;
  for (int i = 0; i < 1000; ++i) {
    while (credits <= static_cast<int>(kControlReserve)) {
      const Frame grant = peer().AwaitFrame();
      ASSERT_EQ(KindOf(grant), FrameKind::kGrant);
      credits += HeaderOf<FrameHeader>(grant).credits;
      ++grants;
    }
    ASSERT_LE(credits, 16);
    // The grants are reported as a real peer does it.
    peer().Send(RequestFrame(1, 2, "x", kNoTimeout, static_cast<uint16_t>(grants)));
    grants = 0;
    --credits;
  }
  AwaitFrames(1000);
  EXPECT_FALSE(handler().closed);
  EXPECT_EQ(peer().receiver_not_ready(), 0u);
  EXPECT_EQ(under_test_->receiver_not_ready(), 0u);
}

TEST_F(Credits, GrantsNoMoreThanItMayWhenThePeerReturnsNone) {
  Open({.ring_depth = 16}, {.ring_depth = 16, .posts_receives_again = false});
  // 15 grants empty the peer's ring but for the close; the peer's sixteenth must wait for ever.
  int credits = 16;
  int grants = 0;
  while (true) {
    if (credits == 0) {
      StepQuietly();
      if (peer().FramesWaiting() == 0) break;
      const Frame grant = peer().AwaitFrame();
      credits += HeaderOf<FrameHeader>(grant).credits;
      ++grants;
      continue;
    }
    peer().Send(RequestFrame(1, 2, "x"));
    --credits;
    ASSERT_LT(grants, 100);
  }
  EXPECT_EQ(grants, 15);
  EXPECT_FALSE(handler().closed);
  EXPECT_EQ(under_test_->receiver_not_ready(), 0u);
}

// Two real endpoints, both sending as fast as they may.
void Exchange(const EndpointOptions& a_options, const EndpointOptions& b_options, size_t a_count,
              size_t b_count) {
  auto a_device = Must(CreateSoftDevice());
  auto b_device = Must(CreateSoftDevice());
  EndpointUnderTest a(*a_device, a_options);
  EndpointUnderTest b(*b_device, b_options);
  const Address address = FreshAddress();
  b.Listen(address);
  a.Connect(address);
  size_t a_sent = 0;
  size_t b_sent = 0;
  const auto start = std::chrono::steady_clock::now();
  while (a.handler().frames.size() < b_count || b.handler().frames.size() < a_count) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20))
        << a_sent << " and " << b_sent << " sent, " << b.handler().frames.size() << " and "
        << a.handler().frames.size() << " received";
    const auto send = [](EndpointUnderTest& from, size_t& sent, size_t count) {
      if (!from.endpoint().is_open()) return;
      const auto frame = [&] {
        return RequestFrame(static_cast<uint32_t>(sent + 1), 2,
                            std::string(sent % 5 == 0 ? 400 : 4, 'x'));
      };
      while (sent < count && from.TrySend(frame())) ++sent;
    };
    send(a, a_sent, a_count);
    send(b, b_sent, b_count);
    a.Step();
    b.Step();
  }
  for (size_t i = 0; i < a_count; ++i) {
    ASSERT_EQ(HeaderOf<FrameHeader>(b.handler().frames[i].frame).call_id, i + 1);
  }
  EXPECT_FALSE(a.handler().closed);
  EXPECT_FALSE(b.handler().closed);
  EXPECT_EQ(a.receiver_not_ready(), 0u);
  EXPECT_EQ(b.receiver_not_ready(), 0u);
}

TEST(CreditExchange, BothSidesOfTheSmallestRingsFinish) {
  Exchange({.ring_depth = 16, .slot_bytes = 512}, {.ring_depth = 16, .slot_bytes = 512}, 20'000,
           20'000);
}

TEST(CreditExchange, ASideThatOnlySendsAndASideThatOnlyGrantsFinish) {
  Exchange({.ring_depth = 16, .slot_bytes = 512}, {.ring_depth = 16, .slot_bytes = 512}, 20'000, 0);
}

TEST(CreditExchange, RingsOfDifferentDepthsFinish) {
  Exchange({.ring_depth = 16, .slot_bytes = 512}, {.ring_depth = 1024, .slot_bytes = 4096}, 10'000,
           10'000);
}

}  // namespace
}  // namespace verbena
