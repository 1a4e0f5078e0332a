// SPDX-License-Identifier: Apache-2.0
//
// Frames through a real endpoint: in order, whole, in place, whatever their size and batch.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "verbena/base/random.h"
#include "verbena/tests/protocol/endpoint_fixture.h"
#include "verbena/tests/support/status_matchers.h"
#include "verbena/tests/support/wait.h"

namespace verbena {
namespace {

class EndpointFrames : public EndpointTest {
 protected:
  // `count` frames of `bytes(i)` payload bytes, answered by the peer with credits only.
  template <class Bytes>
  void ExpectInOrder(uint32_t count, Bytes bytes) {
    uint32_t sent = 0;
    uint32_t received = 0;
    uint32_t unreported = 0;
    const auto end = std::chrono::steady_clock::now() + kHangBound;
    while (received < count) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << sent << " sent, " << received << " came";
      while (sent < count) {
        const std::string payload(bytes(sent), static_cast<char>('a' + sent % 26));
        if (!under_test_->TrySend(RequestFrame(sent + 1, sent, payload))) break;
        ++sent;
      }
      // The step may bring credits instead of a frame; then more can be sent.
      if (peer().FramesWaiting() == 0) continue;
      const Frame frame = peer().AwaitFrame();
      ++unreported;
      if (KindOf(frame) == FrameKind::kGrant) continue;
      ++received;
      ASSERT_EQ(HeaderOf<RequestHeader>(frame).frame.call_id, received);
      ASSERT_EQ(PayloadOf<RequestHeader>(frame),
                std::string(bytes(received - 1), static_cast<char>('a' + (received - 1) % 26)));
      if (unreported >= 4) {
        peer().Send(GrantFrame(static_cast<uint16_t>(unreported)));
        unreported = 0;
      }
    }
    EXPECT_FALSE(handler().closed);
    EXPECT_EQ(under_test_->receiver_not_ready(), 0u);
    EXPECT_EQ(peer().receiver_not_ready(), 0u);
  }
};

TEST_F(EndpointFrames, GivesTheHandlerTheFrameAsItWasSent) {
  Open();
  peer().Send(RequestFrame(0x1003, 0x1122334455667788, "message", 1000));
  AwaitFrames(1);
  EXPECT_EQ(handler().frames[0].frame, RequestFrame(0x1003, 0x1122334455667788, "message", 1000));
}

TEST_F(EndpointFrames, TakesAFrameThatFillsItsSlotExactly) {
  Open({.slot_bytes = 512});
  EXPECT_EQ(endpoint().frame_bytes_max(), 512u);
  const Frame full = RequestFrame(1, 2, std::string(512 - sizeof(RequestHeader), 'x'));
  peer().Send(full);
  AwaitFrames(1);
  EXPECT_EQ(handler().frames[0].frame, full);
  EXPECT_TRUE(under_test_->TrySend(full));
  EXPECT_EQ(peer().AwaitFrame(), full);
}

TEST_F(EndpointFrames, BreaksTheConnectionOfAPeerThatSendsMoreThanASlot) {
  Open({.slot_bytes = 512});
  peer().Send(RequestFrame(1, 2, std::string(513 - sizeof(RequestHeader), 'x')));
  EXPECT_THAT(AwaitClosed(), Is(absl::StatusCode::kUnavailable, "local length error"));
  EXPECT_TRUE(handler().frames.empty());
}

TEST_F(EndpointFrames, SendsNoLongerFramesThanThePeerTakes) {
  Open({.slot_bytes = 4096}, {.slot_bytes = 1024});
  EXPECT_EQ(endpoint().frame_bytes_max(), 1024u);
}

TEST_F(EndpointFrames, KeepsTheOrderOfSmallAndLargeFrames) {
  Open();
  ExpectInOrder(3000, [](uint32_t i) { return i % 3 == 0 ? 3000u : i % 7; });
}

TEST_F(EndpointFrames, KeepsTheOrderOfFramesOfRandomSizes) {
  Open({.ring_depth = 64, .slot_bytes = 2048});
  Random random(5);
  std::vector<uint32_t> sizes;
  for (int i = 0; i < 3000; ++i) sizes.push_back(static_cast<uint32_t>(random.Below(2025)));
  ExpectInOrder(3000, [&](uint32_t i) { return sizes[i]; });
}

TEST_F(EndpointFrames, KeepsTheOrderAroundTheInlineLimit) {
  Open();
  const uint32_t limit = device_->capabilities().inline_bytes_max;
  const uint32_t base = limit < sizeof(RequestHeader) + 2
                            ? 0
                            : limit - static_cast<uint32_t>(sizeof(RequestHeader)) - 2;
  ExpectInOrder(500, [&](uint32_t i) { return base + i % 5; });
}

TEST_F(EndpointFrames, PostsEachFrameAloneWithABatchOfOne) {
  Open({.post_batch_max = 1});
  ExpectInOrder(1000, [](uint32_t i) { return i % 2 == 0 ? 10u : 2000u; });
}

TEST_F(EndpointFrames, PostsThirtyTwoFramesAtOnceWithTheLargestBatch) {
  Open({.post_batch_max = 32});
  ExpectInOrder(2000, [](uint32_t i) { return i % 5 == 0 ? 2000u : 10u; });
}

TEST_F(EndpointFrames, WorksWithTheSmallestRing) {
  Open({.ring_depth = 16}, {.ring_depth = 16});
  ExpectInOrder(2000, [](uint32_t i) { return i % 2 == 0 ? 10u : 2000u; });
}

TEST_F(EndpointFrames, WorksWithTheLargestRing) {
  Open({.ring_depth = 4096, .slot_bytes = 512}, {.ring_depth = 4096, .slot_bytes = 512});
  ExpectInOrder(10'000, [](uint32_t i) { return i % 100; });
}

// 65,536 sends and 32,768 slots wrap the counts inside the work request ids.
TEST_F(EndpointFrames, KeepsCountingPastTheWrapOfItsIds) {
  Open({.ring_depth = 32, .slot_bytes = 512});
  ExpectInOrder(70'000, [](uint32_t i) { return i % 2 == 0 ? 0u : 300u; });
}

TEST_F(EndpointFrames, HoldsAKeptFrameUntilItIsReleased) {
  Open({.ring_depth = 16});
  handler().keeps = true;
  for (uint32_t i = 1; i <= 12; ++i) peer().Send(RequestFrame(i, 2, absl::StrCat("kept ", i)));
  AwaitFrames(12);
  StepQuietly();
  EXPECT_EQ(peer().FramesWaiting(), 0u) << "no grant for receives that are not posted again";
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(PayloadOf<RequestHeader>(handler().frames[i].frame), absl::StrCat("kept ", i + 1));
    endpoint().ReleaseReceive(handler().frames[i].slot);
  }
  under_test_->poller().WantService(&endpoint());
  const Frame grant = peer().AwaitFrame();
  EXPECT_EQ(KindOf(grant), FrameKind::kGrant);
  EXPECT_EQ(HeaderOf<FrameHeader>(grant).credits, 12u);
}

}  // namespace
}  // namespace verbena
