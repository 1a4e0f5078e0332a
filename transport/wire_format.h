// SPDX-License-Identifier: Apache-2.0
//
// The wire: every byte that one Verbena process sends to another, and the one place where it is
// checked. docs/wire_protocol.md is the specification; this header mirrors it, field by field.
//
// Integers are little-endian. Reserved fields are zero when sent; a receiver refuses anything
// else, so that a later version can give them a meaning. Plain data; any thread.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "verbena/transport/connection_manager.h"
#include "verbena/transport/endpoint_options.h"

namespace verbena {

static_assert(std::endian::native == std::endian::little,
              "the headers below are read in place; a big-endian port swaps them here");

inline constexpr uint32_t kWireMagic = 0x4e425256;  // "VRBN"
inline constexpr uint16_t kWireVersion = 1;

// ---- Handshake: private data of the connection request and of the reply ----

// Docs section 2. Sent by both sides.
struct Hello {
  uint32_t magic = kWireMagic;
  uint16_t version = kWireVersion;
  uint16_t reserved0 = 0;
  uint32_t ring_depth = 0;  // Receives that I have posted: your first credits.
  uint32_t slot_bytes = 0;  // Longest frame that I take.
  uint64_t epoch = 0;       // Chosen anew per connection: tells a reconnection from a stale peer.
  // Eight bytes of mine that a probe may READ, and their key; or 0.
  uint64_t probe_address = 0;
  uint32_t probe_key = 0;
  uint32_t reserved1 = 0;
};
static_assert(sizeof(Hello) == 40 && sizeof(Hello) <= kPrivateDataBytesMax);

// Docs section 2.1. Private data of a rejection.
struct Refusal {
  enum class Reason : uint16_t {
    kVersion = 1,      // `limit` is the version I speak.
    kConnections = 2,  // `limit` is how many connections I take.
    kShuttingDown = 3,
    kMalformed = 4,
  };
  uint32_t magic = kWireMagic;
  Reason reason = Reason::kMalformed;
  uint16_t reserved0 = 0;
  uint32_t limit = 0;
  uint32_t reserved1 = 0;
};
static_assert(sizeof(Refusal) == 16);

PrivateData EncodeHello(const Hello& hello);
PrivateData EncodeRefusal(const Refusal& refusal);

// Errors: INVALID_ARGUMENT (not a hello, sizes out of bounds), FAILED_PRECONDITION (another
// version; names both and says which side to update).
absl::StatusOr<Hello> DecodeHello(std::span<const std::byte> private_data);
// What a rejection means for the one that was rejected: UNAVAILABLE, FAILED_PRECONDITION or
// RESOURCE_EXHAUSTED, in words.
absl::Status DecodeRefusal(std::span<const std::byte> private_data);

// ---- Frames: one SEND each ----

// Docs section 3.
enum class FrameKind : uint8_t {
  kRequest = 1,
  kResponse = 2,
  kCancel = 3,
  kGrant = 4,  // Nothing but credits.
  kClose = 5,
  // The payload path, docs section 5.
  kZone = 6,        // A zone that the receiver of this frame may write to.
  kWantZone = 7,    // I have a message for a zone of so many bytes.
  kRecallZone = 8,  // Give me back a zone that I gave you.
  kReturnZone = 9,  // Here it is.
  kLanded = 10,     // What WRITE_WITH_IMM says, of devices that have none.
};

// Common to all frames.
struct FrameHeader {
  FrameKind kind;
  uint8_t flags = 0;     // kFrame*: what stands between header and message.
  uint16_t credits = 0;  // Receives that I posted again since I told you last.
  uint32_t call_id = 0;  // Chosen by the client; 0 in frames of no call.
};
static_assert(sizeof(FrameHeader) == 8);

// Flags. A request may have both, a response the second, other frames none.
inline constexpr uint8_t kFrameReplyZone = 1;    // A ZoneGrant, for the response.
inline constexpr uint8_t kFrameAttachments = 2;  // An AttachmentsHeader and its entries.

struct RequestHeader {
  FrameHeader frame;
  uint64_t method_id;   // MethodId(), rpc/method.h.
  uint32_t timeout_us;  // Time left; kNoTimeout: none, or more than 71 minutes.
  uint32_t reserved = 0;
  // Then, by the flags, a ZoneGrant and the table of attachments; then the message.
};
static_assert(sizeof(RequestHeader) == 24);
inline constexpr uint32_t kNoTimeout = 0xffffffff;

struct ResponseHeader {
  FrameHeader frame;
  uint32_t status_code;  // absl::StatusCode; 0 is OK.
  uint32_t reserved = 0;
  // Then, by the flags, the table of attachments; then the message if the status is OK, else the
  // status message in UTF-8.
};
static_assert(sizeof(ResponseHeader) == 16);

struct CloseHeader {
  enum class Reason : uint32_t {
    kGoingAway = 1,      // An orderly end.
    kProtocolError = 2,  // `detail` is a FrameDefect.
  };
  FrameHeader frame;
  Reason reason;
  uint32_t detail = 0;
};
static_assert(sizeof(CloseHeader) == 16);

// ---- The payload path ----

// Memory of the granting side, which the other may write one message to.
struct ZoneGrant {
  uint32_t immediate = 0;  // Immediate: what to announce the message with. Never 0.
  uint32_t remote_key = 0;
  uint64_t address = 0;
  uint64_t length = 0;  // Bytes.
};
static_assert(sizeof(ZoneGrant) == 24);

struct ZoneHeader {
  FrameHeader frame;  // call_id: for this call's message; 0: for whichever comes.
  ZoneGrant zone;
};
static_assert(sizeof(ZoneHeader) == 32);

struct WantZoneHeader {
  FrameHeader frame;  // call_id: of the message that waits.
  uint64_t bytes;     // What the zone must take, prefix included.
};
static_assert(sizeof(WantZoneHeader) == 16);

// kRecallZone, kReturnZone, kLanded.
struct ZoneNoteHeader {
  FrameHeader frame;
  uint32_t immediate;
  uint32_t reserved = 0;
};
static_assert(sizeof(ZoneNoteHeader) == 16);

// At the start of a zone. The frame follows, as it would be in a slot.
struct LandingPrefix {
  uint64_t frame_bytes;
  // Between prefix and frame, below kLandedAlignment and a multiple of 8: where a message that is
  // sent from where it was built has the same place in a cache line on both sides, its fields are
  // aligned as the sender's, and copying it is a quarter faster. 0 with attachments.
  uint64_t gap_bytes = 0;
  uint64_t reserved[6] = {};
};
static_assert(sizeof(LandingPrefix) == 64);

struct AttachmentsHeader {
  uint32_t count;
  uint32_t message_bytes;
};
struct AttachmentEntry {
  uint32_t bytes;
  uint32_t field;  // Number of the message's field; 0: of none.
};
static_assert(sizeof(AttachmentsHeader) == 8 && sizeof(AttachmentEntry) == 8);

// Attachments of one message. What the table of so many costs a receiver is bounded, too: 32 MiB.
inline constexpr uint32_t kAttachmentsMax = 1u << 20;

// Attachments in a zone begin at multiples of this, counted from the frame; in a slot they follow
// each other.
inline constexpr size_t kLandedAlignment = 64;
// Where the next one begins, behind what ends at `end`; both from the frame, or both from the zone,
// whose prefix is as long.
constexpr size_t NextAttachmentAt(size_t end, size_t alignment = kLandedAlignment) {
  return (end + alignment - 1) & ~(alignment - 1);
}
static_assert(sizeof(LandingPrefix) % kLandedAlignment == 0);

// The 32 bits that WRITE_WITH_IMM carries: kind (4 bits), generation (16), index (12) of a zone in
// the table of the side that granted it.
class Immediate {
 public:
  static constexpr uint32_t kKindLanded = 1;  // A whole message is in the zone.
  static constexpr uint32_t kZonesMax = 4096;

  explicit constexpr Immediate(uint32_t value) : value_(value) {}
  constexpr Immediate(uint32_t index, uint16_t generation)
      : value_(kKindLanded << 28 | uint32_t{generation} << 12 | index) {}

  constexpr uint32_t value() const { return value_; }
  constexpr uint32_t kind() const { return value_ >> 28; }
  constexpr uint16_t generation() const { return static_cast<uint16_t>(value_ >> 12); }
  constexpr uint32_t index() const { return value_ & 0xfff; }

 private:
  uint32_t value_;
};

// Writing headers. A header is stored eight bytes at a time, because the device copies it a few
// nanoseconds later, and a load that spans two stores still on their way waits for both.
inline void StoreHeaderWord(std::byte* to, uint64_t word) { __builtin_memcpy(to, &word, 8); }
inline void WriteFrameHeader(std::byte* frame, FrameKind kind, uint8_t flags, uint16_t credits,
                             uint32_t call_id) {
  StoreHeaderWord(frame, uint64_t{static_cast<uint8_t>(kind)} | uint64_t{flags} << 8 |
                             uint64_t{credits} << 16 | uint64_t{call_id} << 32);
}
// These leave the FrameHeader to Endpoint::Commit, which knows the credits.
inline void WriteRequestFields(std::byte* frame, uint64_t method_id, uint32_t timeout_us) {
  StoreHeaderWord(frame + offsetof(RequestHeader, method_id), method_id);
  StoreHeaderWord(frame + offsetof(RequestHeader, timeout_us), timeout_us);
}
inline void WriteResponseFields(std::byte* frame, uint32_t status_code) {
  StoreHeaderWord(frame + offsetof(ResponseHeader, status_code), status_code);
}
inline void WriteCloseFields(std::byte* frame, CloseHeader::Reason reason, uint32_t detail) {
  StoreHeaderWord(frame + offsetof(CloseHeader, reason),
                  static_cast<uint32_t>(reason) | uint64_t{detail} << 32);
}

// What can be wrong with a frame. Values travel in CloseHeader::detail.
enum class FrameDefect : uint32_t {
  kNone = 0,
  kShort = 1,  // Ends before its header does.
  kUnknownKind = 2,
  kReservedBits = 3,
  kCallId = 4,  // Zero where one is needed, or the other way round; or out of range.
  kStatusCode = 5,
  kTooManyCredits = 6,  // More than were spent.
  kTrailingBytes = 7,   // kCancel, kGrant and kClose have no payload.
  kWrongDirection = 8,  // A response to a server, or a request to a client.
  kZone = 9,            // An immediate that names no zone which was granted and not used yet.
  kZoneGrant = 10,      // A grant that nobody could use: empty, or one too many.
  kAttachments = 11,    // A table that does not fit the frame.
  kLanded = 12,         // A landed frame longer than its zone, or of a kind that does not land.
};
std::string_view FrameDefectName(FrameDefect defect);

// The validator: afterwards the header of the frame's kind may be read in place. `frame` starts at
// a multiple of 8 bytes. Knows nothing of the connection's state, so kTooManyCredits,
// kWrongDirection and a call id out of range are for its callers to find.
FrameDefect ValidateFrame(std::span<const std::byte> frame);
// The same for one that landed in a zone: a request or a response.
FrameDefect ValidateLanded(std::span<const std::byte> frame);

// What follows the header of a request or response.
class FrameBody {
 public:
  // REQUIRES: a valid frame of these kinds. `landed`: it was in a zone and not in a slot.
  FrameBody(std::span<const std::byte> frame, bool landed);

  bool has_reply_zone() const { return has_reply_zone_; }
  const ZoneGrant& reply_zone() const { return reply_zone_; }
  std::span<const std::byte> message() const { return message_; }
  uint32_t attachment_count() const { return count_; }

  // The next attachment: its place in the frame, and its field. False when it is not inside the
  // frame, which a valid one only becomes when the peer changes it meanwhile (it can, in shared
  // memory). REQUIRES: called at most attachment_count() times.
  bool NextAttachment(size_t* offset, uint32_t* bytes, uint32_t* field);

 private:
  friend FrameDefect ValidateBody(std::span<const std::byte> frame, bool landed);

  std::span<const std::byte> frame_;
  size_t alignment_;
  bool has_reply_zone_ = false;
  ZoneGrant reply_zone_;
  std::span<const std::byte> message_;
  uint32_t count_ = 0;
  size_t entry_at_ = 0;       // The next entry in the frame; 0: the frame is not valid.
  size_t attachment_at_ = 0;  // Behind the last attachment.
};

// Bounds for what a Hello may say, and for EndpointOptions.
inline constexpr uint32_t kRingDepthMin = 16;
inline constexpr uint32_t kRingDepthMax = 4096;
inline constexpr uint32_t kSlotBytesMin = 512;
inline constexpr uint32_t kSlotBytesMax = 65536;

}  // namespace verbena
