// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/endpoint_options.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "verbena/transport/wire_format.h"

namespace verbena {

absl::Status EndpointOptions::Validate() const {
  if (ring_depth < kRingDepthMin || ring_depth > kRingDepthMax ||
      !std::has_single_bit(ring_depth)) {
    return absl::InvalidArgumentError(absl::StrCat("EndpointOptions::ring_depth is ", ring_depth,
                                                   ": it must be a power of two ", "from ",
                                                   kRingDepthMin, " to ", kRingDepthMax));
  }
  if (slot_bytes < kSlotBytesMin || slot_bytes > kSlotBytesMax || slot_bytes % 64 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("EndpointOptions::slot_bytes is ", slot_bytes,
                                                   ": it must be a multiple of 64 ", "from ",
                                                   kSlotBytesMin, " to ", kSlotBytesMax));
  }
  if (slot_frame_bytes_max != 0 &&
      (slot_frame_bytes_max < kSlotFrameBytesMin || slot_frame_bytes_max > slot_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "EndpointOptions::slot_frame_bytes_max is ", slot_frame_bytes_max, ": it must be ",
        kSlotFrameBytesMin, " to slot_bytes (", slot_bytes, "), or 0 for slot_bytes"));
  }
  if (post_batch_max < 1 || post_batch_max > kPostBatchBound) {
    return absl::InvalidArgumentError(absl::StrCat("EndpointOptions::post_batch_max is ",
                                                   post_batch_max, ": it must be 1 to ",
                                                   kPostBatchBound));
  }
  if (detection_time != std::chrono::milliseconds::zero() &&
      (detection_time < kDetectionTimeMin || detection_time > kDetectionTimeMax)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "EndpointOptions::detection_time is ", detection_time.count(), " ms: it must be ",
        kDetectionTimeMin.count(), " to ", kDetectionTimeMax.count(), " ms, or 0 for never"));
  }
  return absl::OkStatus();
}

uint8_t AcknowledgementTimeout(std::chrono::milliseconds detection_time) {
  constexpr std::chrono::nanoseconds kUnit{4096};  // InfiniBand specification vol. 1, 9.7.6.1.3.
  constexpr int kWaits = 8;                        // The first, and seven retries.
  constexpr uint8_t kMax = 31;
  uint8_t exponent = 1;
  while (exponent < kMax && kWaits * kUnit * (int64_t{1} << (exponent + 1)) <= detection_time) {
    ++exponent;
  }
  return exponent;
}

}  // namespace verbena
