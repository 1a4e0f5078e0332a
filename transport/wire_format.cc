// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/wire_format.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace verbena {
namespace {

template <class T>
PrivateData Encode(const T& value) {
  PrivateData data;
  std::memcpy(data.bytes.data(), &value, sizeof(value));
  data.size = sizeof(value);
  return data;
}

// Private data may arrive padded with zeros, never cut.
template <class T>
bool Decode(std::span<const std::byte> data, T* value) {
  if (data.size() < sizeof(T)) return false;
  std::memcpy(value, data.data(), sizeof(T));
  return true;
}

template <class T>
const T& HeaderAs(std::span<const std::byte> frame) {
  return *reinterpret_cast<const T*>(frame.data());
}

FrameDefect ValidateRequest(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(RequestHeader)) return FrameDefect::kShort;
  const auto& header = HeaderAs<RequestHeader>(frame);
  if (header.frame.call_id == 0) return FrameDefect::kCallId;
  if (header.reserved != 0) return FrameDefect::kReservedBits;
  return FrameDefect::kNone;
}

FrameDefect ValidateResponse(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(ResponseHeader)) return FrameDefect::kShort;
  const auto& header = HeaderAs<ResponseHeader>(frame);
  if (header.frame.call_id == 0) return FrameDefect::kCallId;
  if (header.reserved != 0) return FrameDefect::kReservedBits;
  // The canonical codes are 0 (OK) to 16 (UNAUTHENTICATED).
  if (header.status_code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
    return FrameDefect::kStatusCode;
  }
  return FrameDefect::kNone;
}

FrameDefect ValidateClose(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(CloseHeader)) return FrameDefect::kShort;
  if (frame.size() > sizeof(CloseHeader)) return FrameDefect::kTrailingBytes;
  if (HeaderAs<CloseHeader>(frame).frame.call_id != 0) return FrameDefect::kCallId;
  return FrameDefect::kNone;
}

FrameDefect ValidateBare(std::span<const std::byte> frame, bool has_call_id) {
  if (frame.size() > sizeof(FrameHeader)) return FrameDefect::kTrailingBytes;
  const bool call_id_there = HeaderAs<FrameHeader>(frame).call_id != 0;
  return call_id_there == has_call_id ? FrameDefect::kNone : FrameDefect::kCallId;
}

}  // namespace

PrivateData EncodeHello(const Hello& hello) { return Encode(hello); }
PrivateData EncodeRefusal(const Refusal& refusal) { return Encode(refusal); }

absl::StatusOr<Hello> DecodeHello(std::span<const std::byte> private_data) {
  Hello hello;
  if (!Decode(private_data, &hello) || hello.magic != kWireMagic) {
    return absl::InvalidArgumentError(
        "the peer does not speak Verbena's protocol: check that the address is a Verbena server's");
  }
  if (hello.version != kWireVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer speaks version ", hello.version, " of the wire protocol and this ",
                     "side version ", kWireVersion, ": update the ",
                     hello.version < kWireVersion ? "peer" : "program on this side"));
  }
  if (hello.reserved0 != 0 || hello.reserved1 != 0) {
    return absl::InvalidArgumentError("the peer's hello has reserved bits set");
  }
  if (hello.ring_depth < kRingDepthMin || hello.ring_depth > kRingDepthMax ||
      hello.slot_bytes < kSlotBytesMin || hello.slot_bytes > kSlotBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer's hello is out of bounds: ring depth ", hello.ring_depth, " (",
                     kRingDepthMin, " to ", kRingDepthMax, "), slot bytes ", hello.slot_bytes, " (",
                     kSlotBytesMin, " to ", kSlotBytesMax, ")"));
  }
  return hello;
}

absl::Status DecodeRefusal(std::span<const std::byte> private_data) {
  Refusal refusal;
  if (!Decode(private_data, &refusal) || refusal.magic != kWireMagic) {
    return absl::UnavailableError(
        "the peer refused the connection without a reason: either nobody listens at this address "
        "of "
        "the host, or the server could not take it and its log says why");
  }
  switch (refusal.reason) {
    case Refusal::Reason::kVersion:
      return absl::FailedPreconditionError(absl::StrCat(
          "the server speaks version ", refusal.limit, " of the wire protocol and this side ",
          "version ", kWireVersion, ": update the older of the two"));
    case Refusal::Reason::kConnections:
      return absl::ResourceExhaustedError(
          absl::StrCat("the server has all the connections it takes, ", refusal.limit,
                       ": close some, or raise ServerOptions::connections_max"));
    case Refusal::Reason::kShuttingDown:
      return absl::UnavailableError("the server is shutting down: try again, or another one");
    case Refusal::Reason::kMalformed:
      return absl::FailedPreconditionError("the server did not understand this side's hello");
  }
  return absl::UnavailableError("the server refused the connection for a reason unknown here");
}

std::string_view FrameDefectName(FrameDefect defect) {
  switch (defect) {
    case FrameDefect::kNone:
      return "none";
    case FrameDefect::kShort:
      return "the frame ends before its header does";
    case FrameDefect::kUnknownKind:
      return "unknown kind of frame";
    case FrameDefect::kReservedBits:
      return "reserved bits are set";
    case FrameDefect::kCallId:
      return "bad call id";
    case FrameDefect::kStatusCode:
      return "status code out of range";
    case FrameDefect::kTooManyCredits:
      return "more credits returned than were spent";
    case FrameDefect::kTrailingBytes:
      return "bytes behind a frame that has no payload";
    case FrameDefect::kWrongDirection:
      return "a frame that only the other side may send";
  }
  return "unknown defect";
}

FrameDefect ValidateFrame(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(FrameHeader)) return FrameDefect::kShort;
  const auto& header = HeaderAs<FrameHeader>(frame);
  if (header.flags != 0) return FrameDefect::kReservedBits;
  switch (header.kind) {
    case FrameKind::kRequest:
      return ValidateRequest(frame);
    case FrameKind::kResponse:
      return ValidateResponse(frame);
    case FrameKind::kCancel:
      return ValidateBare(frame, /*has_call_id=*/true);
    case FrameKind::kGrant:
      return ValidateBare(frame, /*has_call_id=*/false);
    case FrameKind::kClose:
      return ValidateClose(frame);
  }
  return FrameDefect::kUnknownKind;
}

}  // namespace verbena
