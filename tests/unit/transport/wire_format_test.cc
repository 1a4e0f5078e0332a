// SPDX-License-Identifier: Apache-2.0
//
// The bytes below are worked out by hand from docs/wire_protocol.md, offset by offset; nothing here
// is computed with the header under test.

#include "verbena/transport/wire_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "verbena/tests/support/status_matchers.h"

namespace verbena {
namespace {

// "01 00 05 00" and the like, spaces optional.
std::string Bytes(std::string hex) {
  std::erase(hex, ' ');
  return absl::HexStringToBytes(hex);
}

template <class T>
std::string BytesOf(const T& header) {
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header));
}

std::string BytesOf(const PrivateData& data) {
  return std::string(reinterpret_cast<const char*>(data.bytes.data()), data.size);
}

PrivateData PrivateBytes(const std::string& bytes) {
  PrivateData data;
  std::memcpy(data.bytes.data(), bytes.data(), bytes.size());
  data.size = bytes.size();
  return data;
}

// Section 2: magic VRBN, version 1, ring 128, slots of 4096, epoch 0x1122334455667788, probe at
// 0x7f00aabbccdd1000 with key 0x01020304.
constexpr char kHello[] =
    "56 52 42 4e  01 00  00 00  80 00 00 00  00 10 00 00  88 77 66 55 44 33 22 11"
    "00 10 dd cc bb aa 00 7f  04 03 02 01  00 00 00 00";

std::string HelloBytes() { return Bytes(kHello); }

// The hello with the `size` bytes at `offset` replaced.
PrivateData HelloWith(size_t offset, const std::string& hex) {
  std::string bytes = HelloBytes();
  const std::string part = Bytes(hex);
  bytes.replace(offset, part.size(), part);
  return PrivateBytes(bytes);
}

// ---- Golden bytes ----

TEST(WireFormat, HelloIsTheseBytes) {
  Hello hello;
  hello.ring_depth = 128;
  hello.slot_bytes = 4096;
  hello.epoch = 0x1122334455667788;
  hello.probe_address = 0x7f00aabbccdd1000;
  hello.probe_key = 0x01020304;
  EXPECT_EQ(BytesOf(EncodeHello(hello)), HelloBytes());
}

TEST(WireFormat, RefusalIsTheseBytes) {
  EXPECT_EQ(BytesOf(EncodeRefusal({.reason = Refusal::Reason::kConnections, .limit = 1024})),
            Bytes("56 52 42 4e  02 00  00 00  00 04 00 00  00 00 00 00"));
  EXPECT_EQ(BytesOf(EncodeRefusal({.reason = Refusal::Reason::kVersion, .limit = 1})),
            Bytes("56 52 42 4e  01 00  00 00  01 00 00 00  00 00 00 00"));
  EXPECT_EQ(BytesOf(EncodeRefusal({.reason = Refusal::Reason::kShuttingDown})),
            Bytes("56 52 42 4e  03 00  00 00  00 00 00 00  00 00 00 00"));
  EXPECT_EQ(BytesOf(EncodeRefusal({.reason = Refusal::Reason::kMalformed})),
            Bytes("56 52 42 4e  04 00  00 00  00 00 00 00  00 00 00 00"));
}

TEST(WireFormat, RequestIsTheseBytes) {
  const RequestHeader header{
      .frame = {.kind = FrameKind::kRequest, .credits = 5, .call_id = 0x1003},
      .method_id = 0x1122334455667788,
      .timeout_us = 1000};
  EXPECT_EQ(BytesOf(header), Bytes("01 00 05 00  03 10 00 00  88 77 66 55 44 33 22 11"
                                   "e8 03 00 00  00 00 00 00"));
}

TEST(WireFormat, RequestWithoutADeadlineHasATimeoutOfOnes) {
  const RequestHeader header{.frame = {.kind = FrameKind::kRequest, .call_id = 1},
                             .method_id = 2,
                             .timeout_us = kNoTimeout};
  EXPECT_EQ(BytesOf(header), Bytes("01 00 00 00  01 00 00 00  02 00 00 00 00 00 00 00"
                                   "ff ff ff ff  00 00 00 00"));
}

TEST(WireFormat, ResponseIsTheseBytes) {
  const ResponseHeader header{
      .frame = {.kind = FrameKind::kResponse, .credits = 0x0102, .call_id = 0x04030201},
      .status_code = 14};
  EXPECT_EQ(BytesOf(header), Bytes("02 00 02 01  01 02 03 04  0e 00 00 00  00 00 00 00"));
}

TEST(WireFormat, CancelAndGrantAreTheseBytes) {
  EXPECT_EQ(BytesOf(FrameHeader{.kind = FrameKind::kCancel, .call_id = 0x2001}),
            Bytes("03 00 00 00  01 20 00 00"));
  EXPECT_EQ(BytesOf(FrameHeader{.kind = FrameKind::kGrant, .credits = 64}),
            Bytes("04 00 40 00  00 00 00 00"));
}

TEST(WireFormat, CloseIsTheseBytes) {
  EXPECT_EQ(BytesOf(CloseHeader{.frame = {.kind = FrameKind::kClose},
                                .reason = CloseHeader::Reason::kGoingAway}),
            Bytes("05 00 00 00  00 00 00 00  01 00 00 00  00 00 00 00"));
  EXPECT_EQ(BytesOf(CloseHeader{.frame = {.kind = FrameKind::kClose},
                                .reason = CloseHeader::Reason::kProtocolError,
                                .detail = static_cast<uint32_t>(FrameDefect::kTooManyCredits)}),
            Bytes("05 00 00 00  00 00 00 00  02 00 00 00  06 00 00 00"));
}

// Zone 5 of generation 3: kind 1 << 28 | 3 << 12 | 5.
TEST(WireFormat, ZoneIsTheseBytes) {
  const ZoneHeader header{.frame = {.kind = FrameKind::kZone, .credits = 2, .call_id = 0x1003},
                          .zone = {.immediate = 0x10003005,
                                   .remote_key = 0x11223344,
                                   .address = 0x7f4000001000,
                                   .length = 0x18000}};
  EXPECT_EQ(BytesOf(header), Bytes("06 00 02 00  03 10 00 00  05 30 00 10  44 33 22 11"
                                   "00 10 00 00 40 7f 00 00  00 80 01 00 00 00 00 00"));
}

TEST(WireFormat, WantZoneIsTheseBytes) {
  const WantZoneHeader header{.frame = {.kind = FrameKind::kWantZone, .call_id = 0x1003},
                              .bytes = 0x0102030405060708};
  EXPECT_EQ(BytesOf(header), Bytes("07 00 00 00  03 10 00 00  08 07 06 05 04 03 02 01"));
}

TEST(WireFormat, RecallReturnAndLandedAreTheseBytes) {
  const auto note = [](FrameKind kind) {
    return BytesOf(ZoneNoteHeader{.frame = {.kind = kind}, .immediate = 0x10003005});
  };
  EXPECT_EQ(note(FrameKind::kRecallZone),
            Bytes("08 00 00 00  00 00 00 00  05 30 00 10  00 00 00 00"));
  EXPECT_EQ(note(FrameKind::kReturnZone),
            Bytes("09 00 00 00  00 00 00 00  05 30 00 10  00 00 00 00"));
  EXPECT_EQ(note(FrameKind::kLanded), Bytes("0a 00 00 00  00 00 00 00  05 30 00 10  00 00 00 00"));
}

TEST(WireFormat, LandingPrefixIsTheseBytes) {
  EXPECT_EQ(BytesOf(LandingPrefix{.frame_bytes = 0x0102030405}),
            Bytes("05 04 03 02 01 00 00 00") + std::string(56, '\0'));
  EXPECT_EQ(BytesOf(LandingPrefix{.frame_bytes = 1, .gap_bytes = 56}),
            Bytes("01 00 00 00 00 00 00 00  38 00 00 00 00 00 00 00") + std::string(48, '\0'));
}

TEST(WireFormat, TablesOfAttachmentsAreTheseBytes) {
  EXPECT_EQ(BytesOf(AttachmentsHeader{.count = 3, .message_bytes = 0x1234}),
            Bytes("03 00 00 00  34 12 00 00"));
  EXPECT_EQ(BytesOf(AttachmentEntry{.bytes = 0x01020304, .field = 7}),
            Bytes("04 03 02 01  07 00 00 00"));
}

TEST(WireFormat, FlagsAreTheseBits) {
  std::string frame(8, '\xee');
  WriteFrameHeader(reinterpret_cast<std::byte*>(frame.data()), FrameKind::kRequest,
                   kFrameReplyZone | kFrameAttachments, 5, 0x1003);
  EXPECT_EQ(frame, Bytes("01 03 05 00  03 10 00 00"));
  WriteFrameHeader(reinterpret_cast<std::byte*>(frame.data()), FrameKind::kRequest, kFrameReplyZone,
                   0, 1);
  EXPECT_EQ(frame, Bytes("01 01 00 00  01 00 00 00"));
  WriteFrameHeader(reinterpret_cast<std::byte*>(frame.data()), FrameKind::kResponse,
                   kFrameAttachments, 0, 1);
  EXPECT_EQ(frame, Bytes("02 02 00 00  01 00 00 00"));
}

TEST(WireFormat, ImmediatesHaveTheseBits) {
  EXPECT_EQ(Immediate(5, 3).value(), 0x10003005u);
  EXPECT_EQ(Immediate(0, 0).value(), 0x10000000u) << "never 0";
  EXPECT_EQ(Immediate(4095, 65535).value(), 0x1fffffffu);
  EXPECT_EQ(Immediate(0, 1).value(), 0x10001000u);
  const Immediate read(0xabcdef12);
  EXPECT_EQ(read.kind(), 0xau);
  EXPECT_EQ(read.generation(), 0xbcdeu);
  EXPECT_EQ(read.index(), 0xf12u);
}

// ---- The hello, read ----

TEST(WireFormat, ReadsAHelloFieldByField) {
  const absl::StatusOr<Hello> hello = DecodeHello(PrivateBytes(HelloBytes()).span());
  ASSERT_THAT(hello, IsOk());
  EXPECT_EQ(hello->ring_depth, 128u);
  EXPECT_EQ(hello->slot_bytes, 4096u);
  EXPECT_EQ(hello->epoch, 0x1122334455667788u);
}

TEST(WireFormat, ReadsAHelloThatTheWirePadded) {
  std::string padded = HelloBytes();
  padded.resize(kPrivateDataBytesMax, '\0');
  EXPECT_THAT(DecodeHello(PrivateBytes(padded).span()), IsOk());
  padded.back() = '\x7f';  // "Bytes past 40 are ignored."
  EXPECT_THAT(DecodeHello(PrivateBytes(padded).span()), IsOk());
}

TEST(WireFormat, RefusesAHelloThatIsCutAnywhere) {
  for (size_t size = 0; size < 40; ++size) {
    EXPECT_THAT(DecodeHello(PrivateBytes(HelloBytes().substr(0, size)).span()),
                Is(absl::StatusCode::kInvalidArgument, "does not speak Verbena's protocol"))
        << size;
  }
}

TEST(WireFormat, RefusesAHelloWithAnotherMagic) {
  EXPECT_THAT(DecodeHello(HelloWith(0, "57 52 42 4e").span()),
              Is(absl::StatusCode::kInvalidArgument, "does not speak Verbena's protocol"));
}

TEST(WireFormat, SaysWhichSideToUpdateWhenVersionsDiffer) {
  EXPECT_THAT(DecodeHello(HelloWith(4, "02 00").span()),
              Is(absl::StatusCode::kFailedPrecondition,
                 "version 2 of the wire protocol and this side version 1: update the program on "
                 "this side"));
  EXPECT_THAT(DecodeHello(HelloWith(4, "00 00").span()),
              Is(absl::StatusCode::kFailedPrecondition,
                 "version 0 of the wire protocol and this side version 1: update the peer"));
}

TEST(WireFormat, RefusesAHelloWithReservedBits) {
  EXPECT_THAT(DecodeHello(HelloWith(6, "01 00").span()),
              Is(absl::StatusCode::kInvalidArgument, "reserved bits"));
  EXPECT_THAT(DecodeHello(HelloWith(39, "80").span()),
              Is(absl::StatusCode::kInvalidArgument, "reserved bits"));
}

TEST(WireFormat, RefusesAHelloOutOfBounds) {
  for (const char* depth : {"00 00 00 00", "0f 00 00 00", "01 10 00 00", "ff ff ff ff"}) {
    EXPECT_THAT(DecodeHello(HelloWith(8, depth).span()),
                Is(absl::StatusCode::kInvalidArgument, "out of bounds"))
        << depth;
  }
  for (const char* bytes : {"00 00 00 00", "ff 01 00 00", "01 00 01 00", "ff ff ff ff"}) {
    EXPECT_THAT(DecodeHello(HelloWith(12, bytes).span()),
                Is(absl::StatusCode::kInvalidArgument, "out of bounds"))
        << bytes;
  }
  for (const char* depth : {"10 00 00 00", "00 10 00 00", "11 00 00 00"}) {
    EXPECT_THAT(DecodeHello(HelloWith(8, depth).span()), IsOk()) << depth;
  }
  for (const char* bytes : {"00 02 00 00", "00 00 01 00", "01 02 00 00"}) {
    EXPECT_THAT(DecodeHello(HelloWith(12, bytes).span()), IsOk()) << bytes;
  }
}

// ---- The refusal, read ----

absl::Status Refused(const std::string& hex) {
  return DecodeRefusal(PrivateBytes(Bytes(hex)).span());
}

TEST(WireFormat, PutsARefusalIntoWords) {
  EXPECT_THAT(Refused("56 52 42 4e  01 00  00 00  07 00 00 00  00 00 00 00"),
              Is(absl::StatusCode::kFailedPrecondition, "the server speaks version 7"));
  EXPECT_THAT(Refused("56 52 42 4e  02 00  00 00  00 04 00 00  00 00 00 00"),
              Is(absl::StatusCode::kResourceExhausted, "all the connections it takes, 1024"));
  EXPECT_THAT(Refused("56 52 42 4e  03 00  00 00  00 00 00 00  00 00 00 00"),
              Is(absl::StatusCode::kUnavailable, "shutting down"));
  EXPECT_THAT(Refused("56 52 42 4e  04 00  00 00  00 00 00 00  00 00 00 00"),
              Is(absl::StatusCode::kFailedPrecondition, "did not understand"));
}

TEST(WireFormat, TakesARefusalItDoesNotKnowAsUnavailable) {
  EXPECT_THAT(Refused("56 52 42 4e  63 00  00 00  00 00 00 00  00 00 00 00"),
              Is(absl::StatusCode::kUnavailable, "a reason unknown here"));
  EXPECT_THAT(Refused("56 52 42 4e  02 00  00 00"),
              Is(absl::StatusCode::kUnavailable, "without a reason"));
  EXPECT_THAT(Refused("ff ff ff ff  02 00  00 00  00 04 00 00  00 00 00 00"),
              Is(absl::StatusCode::kUnavailable, "without a reason"));
  EXPECT_THAT(Refused(""), Is(absl::StatusCode::kUnavailable, "without a reason"));
}

TEST(WireFormat, NamesEveryDefectDifferently) {
  std::vector<std::string> names;
  for (uint32_t defect = 0; defect <= 12; ++defect) {
    names.emplace_back(FrameDefectName(static_cast<FrameDefect>(defect)));
    EXPECT_NE(names.back(), "unknown defect") << defect;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(FrameDefectName(static_cast<FrameDefect>(13)), "unknown defect");
  EXPECT_EQ(FrameDefectName(static_cast<FrameDefect>(0xffffffff)), "unknown defect");
}

}  // namespace
}  // namespace verbena
