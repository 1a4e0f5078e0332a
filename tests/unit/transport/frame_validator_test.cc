// SPDX-License-Identifier: Apache-2.0
//
// ValidateFrame, the one place where a frame is checked. Frames are written out in hexadecimal from
// docs/wire_protocol.md, section 3.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "verbena/base/random.h"
#include "verbena/transport/wire_format.h"

namespace verbena {
namespace {

// A copy of exactly the frame's size, so that a sanitizer sees a read behind its end; operator new
// aligns it as the validator requires.
FrameDefect Validate(const std::string& frame) {
  const auto copy = std::make_unique<std::byte[]>(frame.size());
  std::memcpy(copy.get(), frame.data(), frame.size());
  return ValidateFrame({copy.get(), frame.size()});
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
}

TEST(FrameValidator, FindsAFrameThatEndsBeforeItsHeader) {
  const std::string request = absl::HexStringToBytes(
      "010000000100000088776655443322110000000000000000");
  const std::string response = absl::HexStringToBytes("02000000010000000000000000000000");
  const std::string close = absl::HexStringToBytes("05000000000000000100000000000000");
  const std::string cancel = absl::HexStringToBytes("0300000001000000");
  for (const std::string& frame : {request, response, close, cancel}) {
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
    const bool known = kind >= 1 && kind <= 5;
    EXPECT_EQ(Validate(frame) == FrameDefect::kUnknownKind, !known) << kind;
  }
}

TEST(FrameValidator, FindsReservedBits) {
  EXPECT_EQ(ValidateHex("01 01 00 00 01 00 00 00 88 77 66 55 44 33 22 11 00 00 00 00 00 00 00 00"),
            FrameDefect::kReservedBits);
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
bool IsValid(const std::string& frame) {
  const auto at = [&](size_t offset) { return static_cast<uint8_t>(frame[offset]); };
  const auto zero = [&](size_t offset, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      if (at(offset + i) != 0) return false;
    }
    return true;
  };
  if (frame.size() < 8 || at(1) != 0) return false;
  switch (at(0)) {
    case 1:
      return frame.size() >= 24 && !zero(4, 4) && zero(20, 4);
    case 2:
      return frame.size() >= 16 && !zero(4, 4) && zero(12, 4) && at(8) <= 16 && zero(9, 3);
    case 3:
      return frame.size() == 8 && !zero(4, 4);
    case 4:
      return frame.size() == 8 && zero(4, 4);
    case 5:
      return frame.size() == 16 && zero(4, 4);
    default:
      return false;
  }
}

// Bytes that are mostly 0 to 5, so that a good part of a million frames gets past the first check.
TEST(FrameValidator, AgreesWithTheRulesOnAMillionRandomFrames) {
  Random random(20260101);
  int valid = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    std::string frame(random.Below(41), '\0');
    for (char& c : frame) {
      const uint64_t bits = random.Next();
      if ((bits & 3) == 0) c = static_cast<char>(bits >> 8 & ((bits & 4) != 0 ? 0xff : 7));
    }
    if (frame.size() >= 4 && random.Below(4) != 0) {
      frame[0] = static_cast<char>(random.Below(6));
      frame[1] = 0;
    }
    const bool wanted = IsValid(frame);
    valid += wanted;
    ASSERT_EQ(Validate(frame) == FrameDefect::kNone, wanted)
        << "frame " << i << ": " << absl::BytesToHexString(frame);
  }
  EXPECT_GT(valid, 10'000) << "the generator makes too few good frames to be of use";
}

}  // namespace
}  // namespace verbena
