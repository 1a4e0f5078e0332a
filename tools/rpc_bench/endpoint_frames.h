// SPDX-License-Identifier: Apache-2.0
//
// What --layer=endpoint sends: valid frames of the wire (transport/wire_format.h) whose payload is
// no Protobuf message. A request with kEndpointEcho comes back with its payload; one with
// kEndpointStats is answered by EndpointStats. Plain data; any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Write a frame to what Endpoint::Reserve gave.
inline void WriteRequest(std::byte* frame, uint32_t call_id, uint64_t method_id,
                         std::span<const std::byte> payload) {
  RequestHeader header = {};
  header.frame.kind = FrameKind::kRequest;
  header.frame.call_id = call_id;
  header.method_id = method_id;
  header.timeout_us = kNoTimeout;
  std::memcpy(frame, &header, sizeof(header));
  std::memcpy(frame + sizeof(header), payload.data(), payload.size());
}
inline void WriteResponse(std::byte* frame, uint32_t call_id, std::span<const std::byte> payload) {
  ResponseHeader header = {};
  header.frame.kind = FrameKind::kResponse;
  header.frame.call_id = call_id;
  std::memcpy(frame, &header, sizeof(header));
  std::memcpy(frame + sizeof(header), payload.data(), payload.size());
}

}  // namespace verbena::bench
