// SPDX-License-Identifier: Apache-2.0
//
// ValidateFrame and ValidateLanded, the one place where a frame is checked. Frames are written out
// in hexadecimal from docs/wire_protocol.md, sections 3 and 5. frame_body_test.cc has the tables of
// attachments.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/escaping.h"
#include "verbena/base/random.h"
#include "verbena/transport/wire_format.h"

namespace verbena {
namespace {

// A copy of exactly the frame's size, so that a sanitizer sees a read behind its end; operator new
// aligns it as the validator requires.
FrameDefect Validate(const std::string& frame, bool landed = false) {
  const auto copy = std::make_unique<std::byte[]>(frame.size());
  std::memcpy(copy.get(), frame.data(), frame.size());
  const std::span<const std::byte> bytes(copy.get(), frame.size());
  return landed ? ValidateLanded(bytes) : ValidateFrame(bytes);
}

FrameDefect ValidateHex(std::string hex) {
  std::erase(hex, ' ');
  return Validate(absl::HexStringToBytes(hex));
}

TEST(FrameValidator, TakesEveryKindOfFrame) {
  EXPECT_EQ(ValidateHex("01 00 05 00 03 10 00 00 88 77 66 55 44 33 22 11 e8 03 00 00 00 00 00 00"),
            FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("01 00 05 00 03 10 00 00 88 77 66 55 44 33 22 11 e8 03 00 00 00 00 00 00"
                        "0a 01 41"),
            FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("02 00 00 00 03 10 00 00 00 00 00 00 00 00 00 00"), FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("02 00 00 00 03 10 00 00 05 00 00 00 00 00 00 00 6e 6f"),
            FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("03 00 00 00 03 10 00 00"), FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("04 00 40 00 00 00 00 00"), FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("05 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00"), FrameDefect::kNone);
  // A zone for call 0x1003, and one for whichever comes.
  EXPECT_EQ(ValidateHex("06 00 00 00 03 10 00 00 05 30 00 10 44 33 22 11"
                        "00 00 00 40 7f 00 00 00 00 80 01 00 00 00 00 00"),
            FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("06 00 02 00 00 00 00 00 00 00 00 10 00 00 00 00"
                        "00 00 00 00 00 00 00 00 41 00 00 00 00 00 00 00"),
            FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("07 00 01 00 03 10 00 00 00 00 00 00 01 00 00 00"), FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("08 00 00 00 00 00 00 00 05 30 00 10 00 00 00 00"), FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("09 00 00 00 00 00 00 00 05 30 00 10 00 00 00 00"), FrameDefect::kNone);
  EXPECT_EQ(ValidateHex("0a 00 00 00 00 00 00 00 05 30 00 10 00 00 00 00"), FrameDefect::kNone);
  // A request with a zone for its response.
  EXPECT_EQ(ValidateHex("01 01 00 00 03 10 00 00 88 77 66 55 44 33 22 11 e8 03 00 00 00 00 00 00"
                        "05 30 00 10 44 33 22 11 00 00 00 40 7f 00 00 00 00 80 01 00 00 00 00 00"
                        "0a 01 41"),
            FrameDefect::kNone);
}

TEST(FrameValidator, FindsAFrameThatEndsBeforeItsHeader) {
  const std::string request =
      absl::HexStringToBytes("010000000100000088776655443322110000000000000000");
  const std::string response = absl::HexStringToBytes("02000000010000000000000000000000");
  const std::string close = absl::HexStringToBytes("05000000000000000100000000000000");
  const std::string cancel = absl::HexStringToBytes("0300000001000000");
  const std::string zone =
      absl::HexStringToBytes("0600000000000000000000100000000000000000000000004100000000000000");
  const std::string want = absl::HexStringToBytes("07000000010000004100000000000000");
  const std::string recall = absl::HexStringToBytes("08000000000000000000001000000000");
  const std::string give_back = absl::HexStringToBytes("09000000000000000000001000000000");
  const std::string landed = absl::HexStringToBytes("0a000000000000000000001000000000");
  for (const std::string& frame :
       {request, response, close, cancel, zone, want, recall, give_back, landed}) {
    ASSERT_EQ(Validate(frame), FrameDefect::kNone);
    for (size_t size = 0; size < frame.size(); ++size) {
      EXPECT_EQ(Validate(frame.substr(0, size)), FrameDefect::kShort)
          << "kind " << int{frame[0]} << " cut to " << size;
    }
  }
}

TEST(FrameValidator, FindsAnUnknownKind) {
  for (int kind = 0; kind <= 255; ++kind) {
    std::string frame(40, '\0');
    frame[0] = static_cast<char>(kind);
    const bool known = kind >= 1 && kind <= 10;
    EXPECT_EQ(Validate(frame) == FrameDefect::kUnknownKind, !known) << kind;
  }
}

TEST(FrameValidator, FindsReservedBits) {
  for (const char* flags : {"04", "08", "10", "20", "40", "80", "07"}) {
    EXPECT_EQ(ValidateHex("01" + std::string(flags) +
                          "00 00 01 00 00 00 88 77 66 55 44 33 22 11 00 00 00 00 00 00 00 00"),
              FrameDefect::kReservedBits)
        << flags;
  }
  // A response has no zone for a response.
  for (const char* flags : {"01", "03", "04"}) {
    EXPECT_EQ(ValidateHex("02" + std::string(flags) +
                          "00 00 01 00 00 00 00 00 00 00 00 00 00 00 05 30 00 10 44 33 22 11"
                          "00 00 00 40 7f 00 00 00 00 80 01 00 00 00 00 00"),
              FrameDefect::kReservedBits)
        << flags;
  }
  for (const char* kind : {"06", "07", "08", "09", "0a"}) {
    EXPECT_EQ(ValidateHex(kind + std::string("01 00 00 00 00 00 00 05 30 00 10 00 00 00 00")),
              FrameDefect::kReservedBits)
        << kind;
  }
  for (const char* kind : {"08", "09", "0a"}) {
    EXPECT_EQ(ValidateHex(kind + std::string("00 00 00 00 00 00 00 05 30 00 10 00 00 00 80")),
              FrameDefect::kReservedBits)
        << kind;
  }
  EXPECT_EQ(ValidateHex("01 00 00 00 01 00 00 00 88 77 66 55 44 33 22 11 00 00 00 00 00 00 00 80"),
            FrameDefect::kReservedBits);
  EXPECT_EQ(ValidateHex("02 80 00 00 01 00 00 00 00 00 00 00 00 00 00 00"),
            FrameDefect::kReservedBits);
  EXPECT_EQ(ValidateHex("02 00 00 00 01 00 00 00 00 00 00 00 01 00 00 00"),
            FrameDefect::kReservedBits);
  EXPECT_EQ(ValidateHex("03 ff 00 00 01 00 00 00"), FrameDefect::kReservedBits);
  EXPECT_EQ(ValidateHex("04 10 00 00 00 00 00 00"), FrameDefect::kReservedBits);
  EXPECT_EQ(ValidateHex("05 02 00 00 00 00 00 00 01 00 00 00 00 00 00 00"),
            FrameDefect::kReservedBits);
}

TEST(FrameValidator, FindsACallIdWhereNoneBelongsAndNoneWhereOneDoes) {
  EXPECT_EQ(ValidateHex("01 00 00 00 00 00 00 00 88 77 66 55 44 33 22 11 00 00 00 00 00 00 00 00"),
            FrameDefect::kCallId);
  EXPECT_EQ(ValidateHex("02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"), FrameDefect::kCallId);
  EXPECT_EQ(ValidateHex("03 00 00 00 00 00 00 00"), FrameDefect::kCallId);
  EXPECT_EQ(ValidateHex("04 00 00 00 01 00 00 00"), FrameDefect::kCallId);
  EXPECT_EQ(ValidateHex("05 00 00 00 00 00 00 80 01 00 00 00 00 00 00 00"), FrameDefect::kCallId);
  EXPECT_EQ(ValidateHex("07 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00"), FrameDefect::kCallId);
  for (const char* kind : {"08", "09", "0a"}) {
    EXPECT_EQ(ValidateHex(kind + std::string("00 00 00 01 00 00 00 05 30 00 10 00 00 00 00")),
              FrameDefect::kCallId)
        << kind;
  }
}

// The grant of a zone, in the frame that has nothing else and in a request.
void ExpectGrant(const std::string& grant, FrameDefect wanted) {
  EXPECT_EQ(ValidateHex("06 00 00 00 03 10 00 00" + grant), wanted) << grant;
  EXPECT_EQ(ValidateHex("01 01 00 00 03 10 00 00 88 77 66 55 44 33 22 11 e8 03 00 00 00 00 00 00" +
                        grant),
            wanted)
      << grant;
}

TEST(FrameValidator, FindsAGrantThatNobodyCouldUse) {
  // The kind of the immediate is in its four highest bits.
  for (const char* kind : {"00", "0f", "20", "f0"}) {
    ExpectGrant("05 30 00" + std::string(kind) +
                    "44 33 22 11 00 00 00 40 7f 00 00 00 00 80 01 00 00 00 00 00",
                FrameDefect::kZoneGrant);
  }
  ExpectGrant("ff ff ff 1f 44 33 22 11 00 00 00 40 7f 00 00 00 00 80 01 00 00 00 00 00",
              FrameDefect::kNone);
  // A prefix and nothing behind it; nothing at all.
  ExpectGrant("05 30 00 10 44 33 22 11 00 00 00 40 7f 00 00 00 40 00 00 00 00 00 00 00",
              FrameDefect::kZoneGrant);
  ExpectGrant("05 30 00 10 44 33 22 11 00 00 00 40 7f 00 00 00 00 00 00 00 00 00 00 00",
              FrameDefect::kZoneGrant);
  // To the last but one address, and beyond it.
  ExpectGrant("05 30 00 10 44 33 22 11 00 00 00 00 00 00 00 f0 ff ff ff ff ff ff ff 0f",
              FrameDefect::kNone);
  ExpectGrant("05 30 00 10 44 33 22 11 00 00 00 00 00 00 00 f0 01 00 00 00 00 00 00 10",
              FrameDefect::kZoneGrant);
  ExpectGrant("05 30 00 10 44 33 22 11 ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff",
              FrameDefect::kZoneGrant);
}

TEST(FrameValidator, TakesRequestsAndResponsesThatLandedAndNothingElse) {
  const std::string request =
      absl::HexStringToBytes("010000000100000088776655443322110000000000000000");
  const std::string response = absl::HexStringToBytes("02000000010000000000000000000000");
  EXPECT_EQ(Validate(request, /*landed=*/true), FrameDefect::kNone);
  EXPECT_EQ(Validate(response, /*landed=*/true), FrameDefect::kNone);
  for (int kind = 0; kind <= 255; ++kind) {
    if (kind == 1 || kind == 2) continue;
    std::string frame(40, '\0');
    frame[0] = static_cast<char>(kind);
    EXPECT_EQ(Validate(frame, /*landed=*/true), FrameDefect::kLanded) << kind;
  }
  for (size_t size = 0; size < request.size(); ++size) {
    EXPECT_EQ(Validate(request.substr(0, size), true), FrameDefect::kShort) << size;
  }
  for (size_t size = 0; size < response.size(); ++size) {
    EXPECT_EQ(Validate(response.substr(0, size), true), FrameDefect::kShort) << size;
  }
}

TEST(FrameValidator, TakesTheSeventeenCanonicalStatusCodesOnly) {
  for (int code = 0; code <= 255; ++code) {
    std::string frame = absl::HexStringToBytes("02000000010000000000000000000000");
    frame[8] = static_cast<char>(code);
    EXPECT_EQ(Validate(frame), code <= 16 ? FrameDefect::kNone : FrameDefect::kStatusCode) << code;
  }
  EXPECT_EQ(ValidateHex("02 00 00 00 01 00 00 00 00 00 00 80 00 00 00 00"),
            FrameDefect::kStatusCode);
}

TEST(FrameValidator, FindsBytesBehindFramesWithoutAPayload) {
  EXPECT_EQ(ValidateHex("03 00 00 00 01 00 00 00 00"), FrameDefect::kTrailingBytes);
  EXPECT_EQ(ValidateHex("04 00 00 00 00 00 00 00 00"), FrameDefect::kTrailingBytes);
  EXPECT_EQ(ValidateHex("05 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00"),
            FrameDefect::kTrailingBytes);
  EXPECT_EQ(ValidateHex("06 00 00 00 03 10 00 00 05 30 00 10 44 33 22 11"
                        "00 00 00 40 7f 00 00 00 00 80 01 00 00 00 00 00 00"),
            FrameDefect::kTrailingBytes);
  for (const char* kind : {"07", "08", "09", "0a"}) {
    EXPECT_EQ(ValidateHex(kind + std::string("00 00 00 00 00 00 00 05 30 00 10 00 00 00 00 00")),
              FrameDefect::kTrailingBytes)
        << kind;
  }
}

TEST(FrameValidator, FindsZeroesAndOnesOfAnyLength) {
  for (size_t size = 0; size <= 40; ++size) {
    const FrameDefect wanted = size < 8 ? FrameDefect::kShort : FrameDefect::kUnknownKind;
    EXPECT_EQ(Validate(std::string(size, '\0')), wanted) << size;
    // Flags are looked at before the kind.
    EXPECT_EQ(Validate(std::string(size, '\xff')),
              size < 8 ? FrameDefect::kShort : FrameDefect::kReservedBits)
        << size;
  }
}

// What the validator must find whatever the order of its checks, said a second time.
class Rules {
 public:
  Rules(const std::string& frame, bool landed) : frame_(frame), landed_(landed) {}

  bool AreKept() const {
    if (Size() < 8) return false;
    const uint64_t kind = At(0, 1);
    const uint64_t flags = At(1, 1);
    const bool call = At(4, 4) != 0;
    if (landed_ && kind != 1 && kind != 2) return false;
    switch (kind) {
      case 1:
        return Size() >= 24 && flags < 4 && call && At(20, 4) == 0 && IsBody(24, flags);
      case 2:
        return Size() >= 16 && (flags == 0 || flags == 2) && call && At(8, 4) <= 16 &&
               At(12, 4) == 0 && IsBody(16, flags);
      case 3:
        return Size() == 8 && flags == 0 && call;
      case 4:
        return Size() == 8 && flags == 0 && !call;
      case 5:
        return Size() == 16 && flags == 0 && !call;
      case 6:
        return Size() == 32 && flags == 0 && IsGrant(8);
      case 7:
        return Size() == 16 && flags == 0 && call;
      case 8:
      case 9:
      case 10:
        return Size() == 16 && flags == 0 && !call && At(12, 4) == 0;
      default:
        return false;
    }
  }

 private:
  uint64_t Size() const { return frame_.size(); }
  // `count` bytes at `offset`, the lowest first.
  uint64_t At(uint64_t offset, int count) const {
    uint64_t value = 0;
    for (int i = count; i-- > 0;) {
      value = value << 8 | static_cast<uint8_t>(frame_.at(offset + static_cast<uint64_t>(i)));
    }
    return value;
  }
  bool IsGrant(uint64_t offset) const {
    const uint64_t address = At(offset + 8, 8);
    const uint64_t length = At(offset + 16, 8);
    return At(offset, 4) >> 28 == 1 && length > 64 && ~address >= length;
  }
  bool IsBody(uint64_t offset, uint64_t flags) const {
    if ((flags & 1) != 0) {
      if (Size() < offset + 24 || !IsGrant(offset)) return false;
      offset += 24;
    }
    if ((flags & 2) == 0) return true;
    if (Size() < offset + 8) return false;
    const uint64_t count = At(offset, 4);
    if (count == 0 || Size() < offset + 8 + 8 * count) return false;
    // Where the frame ends, if it is what it says.
    uint64_t end = offset + 8 + 8 * count + At(offset + 4, 4);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t bytes = At(offset + 8 + 8 * i, 4);
      if (bytes == 0) continue;
      while (landed_ && end % 64 != 0) ++end;
      end += bytes;
    }
    return end == Size();
  }

  const std::string& frame_;
  const bool landed_;
};

void Put(std::string& frame, size_t offset, uint64_t value, size_t count) {
  for (size_t i = 0; i < count && offset + i < frame.size(); ++i) {
    frame[offset + i] = static_cast<char>(value >> 8 * i);
  }
}

// Bytes that are mostly 0 to 7, so that a good part of a million frames gets past the first check;
// and many with grants and tables that are nearly right.
std::string RandomFrame(Random& random, bool landed) {
  std::string frame(random.Below(41), '\0');
  for (char& c : frame) {
    const uint64_t bits = random.Next();
    if ((bits & 3) == 0) c = static_cast<char>(bits >> 8 & ((bits & 4) != 0 ? 0xff : 7));
  }
  if (frame.size() < 4) return frame;
  if (random.Below(4) != 0) {
    frame[0] = static_cast<char>(random.Below(12));
    frame[1] = 0;
  }
  const auto put_grant = [&](size_t offset) {
    Put(frame, offset, random.Below(8) << 26 | random.Below(1 << 26), 4);
    Put(frame, offset + 8, random.Below(2) != 0 ? random.Next() : random.Below(1 << 20), 8);
    Put(frame, offset + 16, random.Below(2) != 0 ? random.Next() : random.Below(200), 8);
  };
  if (frame[0] == 6 && random.Below(2) != 0) {
    frame.resize(32);
    put_grant(8);
  }
  if ((frame[0] != 1 && frame[0] != 2) || random.Below(2) == 0) return frame;
  const uint64_t flags = random.Below(random.Below(8) == 0 ? 5 : 4);
  frame[1] = static_cast<char>(flags);
  size_t at = frame[0] == 1 ? 24 : 16;
  frame.resize(at + 24);
  if (random.Below(2) != 0) Put(frame, at - 4, 0, 4);
  if (random.Below(2) != 0) Put(frame, 8, random.Below(18), 4);
  if ((flags & 1) != 0) {
    put_grant(at);
    at += 24;
  }
  if ((flags & 2) != 0) {
    const uint64_t count = random.Below(4);
    const uint64_t message = random.Below(10);
    size_t end = at + 8 + 8 * count + message;
    frame.resize(at + 8 + 8 * count);
    Put(frame, at, count, 4);
    Put(frame, at + 4, message, 4);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t bytes = random.Below(2) != 0 ? random.Below(100) : 0;
      Put(frame, at + 8 + 8 * i, bytes, 4);
      if (landed && bytes != 0) end = (end + 63) / 64 * 64;
      end += bytes;
    }
    if (random.Below(8) == 0) Put(frame, at + random.Below(8 + 8 * count), random.Next(), 1);
    if (random.Below(8) == 0) end += random.Below(2) != 0 ? 1 : -1;
    at = end;
  }
  frame.resize(at, '\x05');
  return frame;
}

TEST(FrameValidator, AgreesWithTheRulesOnAMillionRandomFrames) {
  Random random(20260101);
  int valid = 0;
  int with_flags = 0;
  int zones = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const std::string frame = RandomFrame(random, /*landed=*/false);
    const bool wanted = Rules(frame, /*landed=*/false).AreKept();
    valid += wanted;
    with_flags += wanted && frame[1] != 0;
    zones += wanted && frame[0] >= 6;
    ASSERT_EQ(Validate(frame) == FrameDefect::kNone, wanted)
        << "frame " << i << ": " << absl::BytesToHexString(frame);
  }
  EXPECT_GT(valid, 10'000) << "the generator makes too few good frames to be of use";
  EXPECT_GT(with_flags, 3'000);
  EXPECT_GT(zones, 1'000);
}

TEST(FrameValidator, AgreesWithTheRulesOnRandomLandedFrames) {
  Random random(20260102);
  int valid = 0;
  int with_flags = 0;
  for (int i = 0; i < 300'000; ++i) {
    const std::string frame = RandomFrame(random, /*landed=*/true);
    const bool wanted = Rules(frame, /*landed=*/true).AreKept();
    valid += wanted;
    with_flags += wanted && frame[1] != 0;
    ASSERT_EQ(Validate(frame, /*landed=*/true) == FrameDefect::kNone, wanted)
        << "frame " << i << ": " << absl::BytesToHexString(frame);
  }
  EXPECT_GT(valid, 3'000);
  EXPECT_GT(with_flags, 1'000);
}

}  // namespace
}  // namespace verbena
