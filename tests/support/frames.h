// SPDX-License-Identifier: Apache-2.0
//
// Frames as bytes, good and bad, and a look at those that came.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "verbena/transport/wire_format.h"

namespace verbena {

using Frame = std::vector<std::byte>;

template <class Header>
Frame MakeFrame(const Header& header, std::string_view payload = {}) {
  Frame frame(sizeof(header) + payload.size());
  std::memcpy(frame.data(), &header, sizeof(header));
  const auto bytes = std::as_bytes(std::span(payload));
  std::copy(bytes.begin(), bytes.end(), frame.begin() + sizeof(header));
  return frame;
}

inline Frame RequestFrame(uint32_t call_id, uint64_t method_id, std::string_view payload,
                          uint32_t timeout_us = kNoTimeout, uint16_t credits = 0) {
  return MakeFrame(
      RequestHeader{.frame = {.kind = FrameKind::kRequest, .credits = credits, .call_id = call_id},
                    .method_id = method_id,
                    .timeout_us = timeout_us},
      payload);
}
inline Frame ResponseFrame(uint32_t call_id, uint32_t status_code, std::string_view payload,
                           uint16_t credits = 0) {
  return MakeFrame(
      ResponseHeader{
          .frame = {.kind = FrameKind::kResponse, .credits = credits, .call_id = call_id},
          .status_code = status_code},
      payload);
}
inline Frame CancelFrame(uint32_t call_id) {
  return MakeFrame(FrameHeader{.kind = FrameKind::kCancel, .call_id = call_id});
}
inline Frame GrantFrame(uint16_t credits) {
  return MakeFrame(FrameHeader{.kind = FrameKind::kGrant, .credits = credits});
}
inline Frame CloseFrame(CloseHeader::Reason reason, uint32_t detail = 0) {
  return MakeFrame(
      CloseHeader{.frame = {.kind = FrameKind::kClose}, .reason = reason, .detail = detail});
}
// "05 00 00", spaces optional.
inline Frame HexFrame(std::string hex) {
  std::erase(hex, ' ');
  const std::string bytes = absl::HexStringToBytes(hex);
  Frame frame(bytes.size());
  std::memcpy(frame.data(), bytes.data(), bytes.size());
  return frame;
}

template <class Header>
Header HeaderOf(const Frame& frame) {
  Header header{};
  std::memcpy(static_cast<void*>(&header), frame.data(), std::min(sizeof(header), frame.size()));
  return header;
}
inline FrameKind KindOf(const Frame& frame) { return HeaderOf<FrameHeader>(frame).kind; }
template <class Header>
std::string PayloadOf(const Frame& frame) {
  return std::string(reinterpret_cast<const char*>(frame.data()) + sizeof(Header),
                     frame.size() - sizeof(Header));
}

}  // namespace verbena
