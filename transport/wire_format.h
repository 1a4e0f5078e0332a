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
  uint64_t reserved1 = 0;
};
static_assert(sizeof(Hello) == 32 && sizeof(Hello) <= kPrivateDataBytesMax);

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
};

// Common to all frames.
struct FrameHeader {
  FrameKind kind;
  uint8_t flags = 0;     // Reserved.
  uint16_t credits = 0;  // Receives that I posted again since I told you last.
  uint32_t call_id = 0;  // Chosen by the client; 0 in kGrant and kClose.
};
static_assert(sizeof(FrameHeader) == 8);

struct RequestHeader {
  FrameHeader frame;
  uint64_t method_id;   // MethodId(), rpc/method.h.
  uint32_t timeout_us;  // Time left; kNoTimeout: none, or more than 71 minutes.
  uint32_t reserved = 0;
  // Then the message, to the end of the frame.
};
static_assert(sizeof(RequestHeader) == 24);
inline constexpr uint32_t kNoTimeout = 0xffffffff;

struct ResponseHeader {
  FrameHeader frame;
  uint32_t status_code;  // absl::StatusCode; 0 is OK.
  uint32_t reserved = 0;
  // Then the message if the status is OK, else the status message in UTF-8.
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

// Writing headers. A header is stored eight bytes at a time, because the device copies it a few
// nanoseconds later, and a load that spans two stores still on their way waits for both.
inline void StoreHeaderWord(std::byte* to, uint64_t word) { __builtin_memcpy(to, &word, 8); }
inline void WriteFrameHeader(std::byte* frame, FrameKind kind, uint16_t credits, uint32_t call_id) {
  StoreHeaderWord(frame, uint64_t{static_cast<uint8_t>(kind)} | uint64_t{credits} << 16 |
                             uint64_t{call_id} << 32);
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
};
std::string_view FrameDefectName(FrameDefect defect);

// The validator: afterwards the header of the frame's kind may be read in place. `frame` starts at
// a multiple of 8 bytes. Knows nothing of the connection's state, so kTooManyCredits,
// kWrongDirection and a call id out of range are for its callers to find.
FrameDefect ValidateFrame(std::span<const std::byte> frame);

// Bounds for what a Hello may say, and for EndpointOptions.
inline constexpr uint32_t kRingDepthMin = 16;
inline constexpr uint32_t kRingDepthMax = 4096;
inline constexpr uint32_t kSlotBytesMin = 512;
inline constexpr uint32_t kSlotBytesMax = 65536;

}  // namespace verbena
