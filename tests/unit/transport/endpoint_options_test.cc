// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/endpoint_options.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "verbena/tests/support/status_matchers.h"
#include "verbena/transport/endpoint.h"

namespace verbena {
namespace {

TEST(EndpointOptions, AreValidByDefault) { EXPECT_THAT(EndpointOptions{}.Validate(), IsOk()); }

// The sum in endpoint_options.h: 128 receive and 12 send slots of 4096 + 64 bytes, 40 bytes beside
// each receive slot, 24 for what each send slot and each inline frame of a batch sends from
// elsewhere, and the endpoint with its parts.
TEST(EndpointOptions, GiveAnIdleConnectionAtMost600KiBByDefault) {
  const EndpointOptions options;
  EXPECT_EQ(options.ring_depth + options.send_slots(), 140u);
  const size_t objects = sizeof(Endpoint) + sizeof(ReceiveRing) + sizeof(ConnectionMemory);
  EXPECT_EQ(Endpoint::MemoryBytes(options) - objects, 532'480u + 49'920u + 5'120u + 1'056u);
  EXPECT_LE(Endpoint::MemoryBytes(options), 600u * 1024);
}

// 8 x 4.096 us x 2^14 = 0.54 s, and 2^15 would be 1.07 s.
TEST(EndpointOptions, LetTheNicGiveUpWithinTheDetectionTime) {
  EXPECT_EQ(AcknowledgementTimeout(std::chrono::milliseconds(1000)), 14);
  EXPECT_EQ(AcknowledgementTimeout(std::chrono::milliseconds(537)), 14);  // 536.87 ms.
  EXPECT_EQ(AcknowledgementTimeout(std::chrono::milliseconds(536)), 13);
  EXPECT_EQ(AcknowledgementTimeout(kDetectionTimeMin), 10);
  EXPECT_EQ(AcknowledgementTimeout(kDetectionTimeMax), 24);
  EXPECT_EQ(AcknowledgementTimeout(std::chrono::hours(100)), 31);
}

TEST(EndpointOptions, TakeALimitOfSlotFramesWithinTheSlot) {
  EXPECT_THAT((EndpointOptions{.slot_bytes = 4096, .slot_frame_bytes_max = 64}).Validate(), IsOk());
  EXPECT_THAT((EndpointOptions{.slot_bytes = 4096, .slot_frame_bytes_max = 4096}).Validate(),
              IsOk());
  EXPECT_THAT((EndpointOptions{.slot_bytes = 4096, .slot_frame_bytes_max = 63}).Validate(),
              Is(absl::StatusCode::kInvalidArgument, "slot_frame_bytes_max"));
  EXPECT_THAT((EndpointOptions{.slot_bytes = 4096, .slot_frame_bytes_max = 4097}).Validate(),
              Is(absl::StatusCode::kInvalidArgument, "slot_frame_bytes_max"));
}

TEST(EndpointOptions, TakeARingThatIsAPowerOfTwoFrom16To4096) {
  for (uint32_t depth : {16u, 32u, 64u, 128u, 256u, 512u, 1024u, 2048u, 4096u}) {
    EXPECT_THAT(EndpointOptions{.ring_depth = depth}.Validate(), IsOk()) << depth;
  }
  for (uint32_t depth : {0u, 1u, 8u, 15u, 17u, 24u, 100u, 127u, 129u, 4095u, 4097u, 8192u,
                         0x80000000u, 0xffffffffu}) {
    EXPECT_THAT(EndpointOptions{.ring_depth = depth}.Validate(),
                Is(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("EndpointOptions::ring_depth is ", depth,
                                ": it must be a power of two from 16 to 4096")));
  }
}

TEST(EndpointOptions, TakeASlotThatIsAMultipleOf64From512To65536) {
  for (uint32_t bytes : {512u, 576u, 4096u, 65472u, 65536u}) {
    EXPECT_THAT(EndpointOptions{.slot_bytes = bytes}.Validate(), IsOk()) << bytes;
  }
  for (uint32_t bytes : {0u, 64u, 448u, 511u, 513u, 544u, 65535u, 65600u, 0xffffffc0u}) {
    EXPECT_THAT(EndpointOptions{.slot_bytes = bytes}.Validate(),
                Is(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("EndpointOptions::slot_bytes is ", bytes,
                                ": it must be a multiple of 64 from 512 to 65536")));
  }
}

TEST(EndpointOptions, TakeABatchFrom1To32) {
  EXPECT_THAT(EndpointOptions{.post_batch_max = 1}.Validate(), IsOk());
  EXPECT_THAT(EndpointOptions{.post_batch_max = 32}.Validate(), IsOk());
  EXPECT_THAT(EndpointOptions{.post_batch_max = 0}.Validate(),
              Is(absl::StatusCode::kInvalidArgument, "post_batch_max is 0: it must be 1 to 32"));
  EXPECT_THAT(EndpointOptions{.post_batch_max = 33}.Validate(),
              Is(absl::StatusCode::kInvalidArgument, "post_batch_max is 33: it must be 1 to 32"));
}

TEST(EndpointOptions, TakeADetectionTimeFrom50MsTo10MinutesOrNever) {
  for (int64_t ms : {0, 50, 1000, 600'000}) {
    EXPECT_THAT(EndpointOptions{.detection_time = std::chrono::milliseconds(ms)}.Validate(),
                IsOk());
  }
  for (int64_t ms : {-1, 1, 49, 600'001}) {
    EXPECT_THAT(EndpointOptions{.detection_time = std::chrono::milliseconds(ms)}.Validate(),
                Is(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("EndpointOptions::detection_time is ", ms,
                                " ms: it must be 50 to 600000 ms, or 0 for never")));
  }
}

TEST(EndpointOptions, DeriveTheSendSlotsFromTheRing) {
  EXPECT_EQ(EndpointOptions{.ring_depth = 16}.send_slots(), 8u);
  EXPECT_EQ(EndpointOptions{.ring_depth = 64}.send_slots(), 8u);
  EXPECT_EQ(EndpointOptions{.ring_depth = 128}.send_slots(), 12u);
  EXPECT_EQ(EndpointOptions{.ring_depth = 4096}.send_slots(), 384u);
}

}  // namespace
}  // namespace verbena
