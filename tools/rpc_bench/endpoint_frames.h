// SPDX-License-Identifier: Apache-2.0
//
// What --layer=endpoint sends: valid frames of the wire (transport/wire_format.h) whose payload is
// no Protobuf message. A request with kEndpointEcho comes back with its payload; one with
// kEndpointStats is answered by EndpointStats. Plain data; any thread.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "verbena/transport/wire_format.h"

namespace verbena::bench {

inline constexpr uint64_t kEndpointEcho = 1;
inline constexpr uint64_t kEndpointStats = 2;

// As StatsResponse in bench.proto. Both sides are the same program.
struct EndpointStats {
  uint64_t cpu_ns = 0;
  uint64_t allocations = 0;
  uint64_t counts_allocations = 0;
  uint64_t receiver_not_ready = 0;
  char cores[64] = {};
};

inline std::span<const std::byte> RequestPayload(std::span<const std::byte> frame) {
  return frame.subspan(sizeof(RequestHeader));
}
inline std::span<const std::byte> ResponsePayload(std::span<const std::byte> frame) {
  return frame.subspan(sizeof(ResponseHeader));
}

// Write a frame, all but what Endpoint::Commit writes, to what Endpoint::Reserve gave.
inline void WriteRequest(std::byte* frame, uint64_t method_id, std::span<const std::byte> payload) {
  WriteRequestFields(frame, method_id, kNoTimeout);
  std::copy(payload.begin(), payload.end(), frame + sizeof(RequestHeader));
}
inline void WriteResponse(std::byte* frame, std::span<const std::byte> payload) {
  WriteResponseFields(frame, /*status_code=*/0);
  std::copy(payload.begin(), payload.end(), frame + sizeof(ResponseHeader));
}

}  // namespace verbena::bench
