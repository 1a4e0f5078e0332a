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
#include <utility>
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

// ---- The payload path ----

inline Frame ZoneFrame(uint32_t call_id, const ZoneGrant& zone) {
  return MakeFrame(
      ZoneHeader{.frame = {.kind = FrameKind::kZone, .call_id = call_id}, .zone = zone});
}
inline Frame WantZoneFrame(uint32_t call_id, uint64_t bytes) {
  return MakeFrame(
      WantZoneHeader{.frame = {.kind = FrameKind::kWantZone, .call_id = call_id}, .bytes = bytes});
}
// kRecallZone, kReturnZone, kLanded.
inline Frame ZoneNoteFrame(FrameKind kind, uint32_t immediate) {
  return MakeFrame(ZoneNoteHeader{.frame = {.kind = kind}, .immediate = immediate});
}

// What stands behind the header of a request or response.
struct Body {
  std::string message;
  std::vector<std::string> attachments = {};
  const ZoneGrant* reply_zone = nullptr;
  bool landed = false;  // Attachments begin at multiples of 64, counted from the frame.
};
// `header` with the flags that the body needs, and the body.
inline Frame WithBody(Frame header, const Body& body) {
  Frame frame = std::move(header);
  const auto append = [&frame](const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    frame.insert(frame.end(), from, from + bytes);
  };
  frame[1] = std::byte((body.reply_zone != nullptr ? 1 : 0) | (body.attachments.empty() ? 0 : 2));
  if (body.reply_zone != nullptr) append(body.reply_zone, 24);
  if (!body.attachments.empty()) {
    const uint32_t counts[] = {static_cast<uint32_t>(body.attachments.size()),
                               static_cast<uint32_t>(body.message.size())};
    append(counts, sizeof(counts));
    for (const std::string& attachment : body.attachments) {
      const uint32_t entry[] = {static_cast<uint32_t>(attachment.size()), 0};
      append(entry, sizeof(entry));
    }
  }
  append(body.message.data(), body.message.size());
  for (const std::string& attachment : body.attachments) {
    if (attachment.empty()) continue;
    while (body.landed && frame.size() % 64 != 0) frame.push_back(std::byte{0});
    append(attachment.data(), attachment.size());
  }
  return frame;
}
// What goes to a zone: the prefix, then the frame.
inline Frame InZone(const Frame& frame, uint64_t frame_bytes) {
  Frame bytes(64 + frame.size());
  std::memcpy(bytes.data(), &frame_bytes, sizeof(frame_bytes));
  std::copy(frame.begin(), frame.end(), bytes.begin() + 64);
  return bytes;
}
inline Frame InZone(const Frame& frame) { return InZone(frame, frame.size()); }
// The frame in a zone, and whether the prefix is what it should be.
inline Frame FromZone(std::span<const std::byte> zone) {
  uint64_t words[8];
  std::memcpy(words, zone.data(), sizeof(words));
  for (int i = 1; i < 8; ++i) {
    if (words[i] != 0) return {};
  }
  if (words[0] > zone.size() - 64) return {};
  return {zone.begin() + 64, zone.begin() + 64 + static_cast<ptrdiff_t>(words[0])};
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
