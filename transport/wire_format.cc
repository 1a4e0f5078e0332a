// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/wire_format.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace verbena {

FrameDefect ValidateBody(std::span<const std::byte> frame, bool landed);

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

// Reads a T at `at`, once: the peer may change it meanwhile.
template <class T>
T ReadAt(std::span<const std::byte> frame, size_t at) {
  T value;
  std::memcpy(&value, frame.data() + at, sizeof(T));
  return value;
}

bool IsPossible(const ZoneGrant& zone) {
  return Immediate(zone.immediate).kind() == Immediate::kKindLanded &&
         zone.length > sizeof(LandingPrefix) && zone.address + zone.length >= zone.address;
}

FrameDefect ValidateRequest(std::span<const std::byte> frame, bool landed) {
  if (frame.size() < sizeof(RequestHeader)) return FrameDefect::kShort;
  const auto& header = HeaderAs<RequestHeader>(frame);
  if ((header.frame.flags & ~(kFrameReplyZone | kFrameAttachments)) != 0) {
    return FrameDefect::kReservedBits;
  }
  if (header.frame.call_id == 0) return FrameDefect::kCallId;
  if (header.reserved != 0) return FrameDefect::kReservedBits;
  if (header.frame.flags == 0) [[likely]]
    return FrameDefect::kNone;
  return ValidateBody(frame, landed);
}

FrameDefect ValidateResponse(std::span<const std::byte> frame, bool landed) {
  if (frame.size() < sizeof(ResponseHeader)) return FrameDefect::kShort;
  const auto& header = HeaderAs<ResponseHeader>(frame);
  if ((header.frame.flags & ~kFrameAttachments) != 0) return FrameDefect::kReservedBits;
  if (header.frame.call_id == 0) return FrameDefect::kCallId;
  if (header.reserved != 0) return FrameDefect::kReservedBits;
  // The canonical codes are 0 (OK) to 16 (UNAUTHENTICATED).
  if (header.status_code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
    return FrameDefect::kStatusCode;
  }
  if (header.frame.flags == 0) [[likely]]
    return FrameDefect::kNone;
  return ValidateBody(frame, landed);
}

FrameDefect ValidateZone(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(ZoneHeader)) return FrameDefect::kShort;
  if (frame.size() > sizeof(ZoneHeader)) return FrameDefect::kTrailingBytes;
  return IsPossible(HeaderAs<ZoneHeader>(frame).zone) ? FrameDefect::kNone
                                                      : FrameDefect::kZoneGrant;
}

FrameDefect ValidateWantZone(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(WantZoneHeader)) return FrameDefect::kShort;
  if (frame.size() > sizeof(WantZoneHeader)) return FrameDefect::kTrailingBytes;
  return HeaderAs<WantZoneHeader>(frame).frame.call_id != 0 ? FrameDefect::kNone
                                                            : FrameDefect::kCallId;
}

FrameDefect ValidateZoneNote(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(ZoneNoteHeader)) return FrameDefect::kShort;
  if (frame.size() > sizeof(ZoneNoteHeader)) return FrameDefect::kTrailingBytes;
  const auto& header = HeaderAs<ZoneNoteHeader>(frame);
  if (header.frame.call_id != 0) return FrameDefect::kCallId;
  return header.reserved == 0 ? FrameDefect::kNone : FrameDefect::kReservedBits;
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
  // These two come first in every version, whatever follows.
  struct {
    uint32_t magic;
    uint16_t version;
  } first;
  Hello hello;
  if (!Decode(private_data, &first) || first.magic != kWireMagic ||
      (first.version == kWireVersion && !Decode(private_data, &hello))) {
    return absl::InvalidArgumentError(
        "the peer does not speak Verbena's protocol: check that the address is a Verbena server's");
  }
  if (first.version != kWireVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer speaks version ", first.version, " of the wire protocol and this ",
                     "side version ", kWireVersion, ": update the ",
                     first.version < kWireVersion ? "peer" : "program on this side"));
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
    case FrameDefect::kZone:
      return "an immediate or a note of no zone that is granted";
    case FrameDefect::kZoneGrant:
      return "an impossible grant of a zone";
    case FrameDefect::kAttachments:
      return "a table of attachments that does not fit the frame";
    case FrameDefect::kLanded:
      return "a landed frame that does not fit its zone";
  }
  return "unknown defect";
}

FrameDefect ValidateFrame(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(FrameHeader)) return FrameDefect::kShort;
  const auto& header = HeaderAs<FrameHeader>(frame);
  if (header.kind == FrameKind::kRequest) return ValidateRequest(frame, /*landed=*/false);
  if (header.kind == FrameKind::kResponse) return ValidateResponse(frame, /*landed=*/false);
  if (header.flags != 0) return FrameDefect::kReservedBits;
  switch (header.kind) {
    case FrameKind::kRequest:
    case FrameKind::kResponse:
      break;
    case FrameKind::kCancel:
      return ValidateBare(frame, /*has_call_id=*/true);
    case FrameKind::kGrant:
      return ValidateBare(frame, /*has_call_id=*/false);
    case FrameKind::kClose:
      return ValidateClose(frame);
    case FrameKind::kZone:
      return ValidateZone(frame);
    case FrameKind::kWantZone:
      return ValidateWantZone(frame);
    case FrameKind::kRecallZone:
    case FrameKind::kReturnZone:
    case FrameKind::kLanded:
      return ValidateZoneNote(frame);
  }
  return FrameDefect::kUnknownKind;
}

FrameDefect ValidateLanded(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(FrameHeader)) return FrameDefect::kShort;
  switch (HeaderAs<FrameHeader>(frame).kind) {
    case FrameKind::kRequest:
      return ValidateRequest(frame, /*landed=*/true);
    case FrameKind::kResponse:
      return ValidateResponse(frame, /*landed=*/true);
    default:
      return FrameDefect::kLanded;
  }
}

// ---- Bodies ----

FrameDefect ValidateBody(std::span<const std::byte> frame, bool landed) {
  FrameBody body(frame, landed);
  if (body.entry_at_ == 0) return FrameDefect::kAttachments;
  if (body.has_reply_zone_ && !IsPossible(body.reply_zone_)) return FrameDefect::kZoneGrant;
  for (uint32_t i = 0; i < body.count_; ++i) {
    size_t offset;
    uint32_t bytes, field;
    if (!body.NextAttachment(&offset, &bytes, &field)) return FrameDefect::kAttachments;
  }
  // Nothing behind the last attachment.
  if (body.count_ != 0 && body.attachment_at_ != frame.size()) return FrameDefect::kAttachments;
  return FrameDefect::kNone;
}

FrameBody::FrameBody(std::span<const std::byte> frame, bool landed)
    : frame_(frame), alignment_(landed ? kLandedAlignment : 1) {
  const auto header = ReadAt<FrameHeader>(frame, 0);
  size_t at = header.kind == FrameKind::kRequest ? sizeof(RequestHeader) : sizeof(ResponseHeader);
  if ((header.flags & kFrameReplyZone) != 0) {
    if (frame.size() - at < sizeof(ZoneGrant)) return;
    has_reply_zone_ = true;
    reply_zone_ = ReadAt<ZoneGrant>(frame, at);
    at += sizeof(ZoneGrant);
  }
  if ((header.flags & kFrameAttachments) == 0) {
    message_ = frame.subspan(at);
    entry_at_ = at;
    return;
  }
  if (frame.size() - at < sizeof(AttachmentsHeader)) return;
  const auto attachments = ReadAt<AttachmentsHeader>(frame, at);
  at += sizeof(AttachmentsHeader);
  if (attachments.count > kAttachmentsMax ||
      (frame.size() - at) / sizeof(AttachmentEntry) < attachments.count) {
    return;
  }
  const size_t message_at = at + size_t{attachments.count} * sizeof(AttachmentEntry);
  if (frame.size() - message_at < attachments.message_bytes || attachments.count == 0) return;
  message_ = frame.subspan(message_at, attachments.message_bytes);
  count_ = attachments.count;
  entry_at_ = at;
  attachment_at_ = message_at + attachments.message_bytes;
}

bool FrameBody::NextAttachment(size_t* offset, uint32_t* bytes, uint32_t* field) {
  const auto entry = ReadAt<AttachmentEntry>(frame_, entry_at_);
  entry_at_ += sizeof(AttachmentEntry);
  const size_t begin = NextAttachmentAt(attachment_at_, alignment_);
  *bytes = entry.bytes;
  *field = entry.field;
  *offset = entry.bytes != 0 ? begin : attachment_at_;  // One of no bytes is nowhere.
  if (entry.bytes == 0) return true;
  if (begin > frame_.size() || frame_.size() - begin < entry.bytes) return false;
  attachment_at_ = begin + entry.bytes;
  return true;
}

}  // namespace verbena
