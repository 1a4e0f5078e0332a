// SPDX-License-Identifier: Apache-2.0
//
// FrameBody: what stands behind the header of a request or response, in a slot and in a zone.
// Offsets are worked out by hand from docs/wire_protocol.md, sections 3.1 and 5.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "verbena/base/random.h"
#include "verbena/transport/wire_format.h"

namespace verbena {
namespace {

std::string Bytes(std::string hex) {
  std::erase(hex, ' ');
  return absl::HexStringToBytes(hex);
}

// Exactly the frame's size, so that AddressSanitizer sees a read outside of it.
class ExactFrame {
 public:
  explicit ExactFrame(const std::string& frame)
      : bytes_(std::make_unique<std::byte[]>(frame.size())), size_(frame.size()) {
    std::memcpy(bytes_.get(), frame.data(), frame.size());
  }
  std::span<std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_;
};

FrameDefect Validate(const std::string& frame, bool landed) {
  const ExactFrame exact(frame);
  return landed ? ValidateLanded(exact.span()) : ValidateFrame(exact.span());
}
void ExpectBoth(const std::string& frame, FrameDefect wanted) {
  EXPECT_EQ(Validate(frame, /*landed=*/false), wanted) << absl::BytesToHexString(frame);
  EXPECT_EQ(Validate(frame, /*landed=*/true), wanted) << absl::BytesToHexString(frame);
}

// Where a body says that things are. Offsets count from the frame.
struct Place {
  size_t offset;
  uint32_t bytes;
  uint32_t field;
  friend bool operator==(const Place&, const Place&) = default;
};
std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.bytes << " at " << place.offset << " for field " << place.field;
}
struct Places {
  size_t message_at;
  size_t message_bytes;
  std::vector<Place> attachments;
};
Places Read(const std::string& frame, bool landed) {
  const ExactFrame exact(frame);
  FrameBody body(exact.span(), landed);
  Places places{
      static_cast<size_t>(body.message().data() - exact.span().data()), body.message().size(), {}};
  for (uint32_t i = 0; i < body.attachment_count(); ++i) {
    Place& place = places.attachments.emplace_back();
    EXPECT_TRUE(body.NextAttachment(&place.offset, &place.bytes, &place.field)) << i;
  }
  return places;
}

const std::string kRequest =
    Bytes("01 00 00 00  03 10 00 00  88 77 66 55 44 33 22 11  e8 03 00 00  00 00 00 00");
const std::string kWithAttachments =
    Bytes("01 02 00 00  03 10 00 00  88 77 66 55 44 33 22 11  e8 03 00 00  00 00 00 00");
const std::string kWithBoth =
    Bytes("01 03 00 00  03 10 00 00  88 77 66 55 44 33 22 11  e8 03 00 00  00 00 00 00");
const std::string kResponseWithAttachments =
    Bytes("02 02 00 00  03 10 00 00  00 00 00 00  00 00 00 00");
const std::string kGrant =
    Bytes("05 30 00 10  44 33 22 11  00 10 00 00 40 7f 00 00  00 80 01 00 00 00 00 00");

TEST(FrameBody, WithoutFlagsTheMessageIsAllThatFollows) {
  for (const bool landed : {false, true}) {
    const Places places = Read(kRequest + "message", landed);
    EXPECT_EQ(places.message_at, 24u);
    EXPECT_EQ(places.message_bytes, 7u);
    EXPECT_TRUE(places.attachments.empty());
    const Places response =
        Read(Bytes("02 00 00 00 03 10 00 00 00 00 00 00 00 00 00 00") + "text", landed);
    EXPECT_EQ(response.message_at, 16u);
    EXPECT_EQ(response.message_bytes, 4u);
  }
}

TEST(FrameBody, ReadsTheZoneForAResponse) {
  const ExactFrame exact(
      Bytes("01 01 00 00  03 10 00 00  88 77 66 55 44 33 22 11  e8 03 00 00  00 00 00 00") +
      kGrant + "text");
  FrameBody body(exact.span(), /*landed=*/false);
  ASSERT_TRUE(body.has_reply_zone());
  EXPECT_EQ(body.reply_zone().immediate, 0x10003005u);
  EXPECT_EQ(body.reply_zone().remote_key, 0x11223344u);
  EXPECT_EQ(body.reply_zone().address, 0x7f4000001000u);
  EXPECT_EQ(body.reply_zone().length, 0x18000u);
  EXPECT_EQ(body.message().data() - exact.span().data(), 48);
  EXPECT_EQ(body.message().size(), 4u);
  EXPECT_EQ(body.attachment_count(), 0u);
  const ExactFrame none(kRequest);
  EXPECT_FALSE(FrameBody(none.span(), false).has_reply_zone());
}

// 24 of header, 8, 2 x 8 of table, the message at 48.
const std::string kTwo = Bytes(
    "02 00 00 00  03 00 00 00  05 00 00 00  00 00 00 00"
    "04 00 00 00  07 00 00 00  0a 01 41");

TEST(FrameBody, AttachmentsInASlotFollowEachOther) {
  const std::string frame = kWithAttachments + kTwo + "hello" + "data";
  EXPECT_EQ(Validate(frame, /*landed=*/false), FrameDefect::kNone);
  const Places places = Read(frame, /*landed=*/false);
  EXPECT_EQ(places.message_at, 48u);
  EXPECT_EQ(places.message_bytes, 3u);
  EXPECT_EQ(places.attachments, (std::vector<Place>{{51, 5, 0}, {56, 4, 7}}));
}

// The example of docs/wire_protocol.md, section 5.6.
TEST(FrameBody, AttachmentsInAZoneBeginAtMultiplesOf64) {
  std::string frame = kWithAttachments + kTwo;
  frame.resize(64);
  frame += "hello";
  frame.resize(128);
  frame += "data";
  ASSERT_EQ(frame.size(), 0x84u);
  EXPECT_EQ(Validate(frame, /*landed=*/true), FrameDefect::kNone);
  EXPECT_EQ(Validate(frame, /*landed=*/false), FrameDefect::kAttachments) << "nor the other way";
  const Places places = Read(frame, /*landed=*/true);
  EXPECT_EQ(places.message_at, 48u);
  EXPECT_EQ(places.message_bytes, 3u);
  EXPECT_EQ(places.attachments, (std::vector<Place>{{64, 5, 0}, {128, 4, 7}}));
}

TEST(FrameBody, AnAttachmentMayBeginWhereTheMessageEnds) {
  // 16 + 8 + 8 + 32 = 64, and 64 bytes later the next.
  std::string frame = kResponseWithAttachments +
                      Bytes("01 00 00 00  20 00 00 00  40 00 00 00  00 00 00 00") +
                      std::string(32, 'm') + std::string(64, 'a');
  ExpectBoth(frame, FrameDefect::kNone);
  EXPECT_EQ(Read(frame, true).attachments, (std::vector<Place>{{64, 64, 0}}));
  EXPECT_EQ(Read(frame, false).attachments, (std::vector<Place>{{64, 64, 0}}));
}

TEST(FrameBody, ReadsAZoneAndAttachmentsInThisOrder) {
  // 24 + 24 + 8 + 8 = 64: the message, of no bytes.
  std::string frame =
      kWithBoth + kGrant + Bytes("01 00 00 00 00 00 00 00 03 00 00 00 ff 00 00 00") + "abc";
  ExpectBoth(frame, FrameDefect::kNone);
  const Places places = Read(frame, true);
  EXPECT_EQ(places.message_at, 64u);
  EXPECT_EQ(places.message_bytes, 0u);
  EXPECT_EQ(places.attachments, (std::vector<Place>{{64, 3, 0xff}}));
}

TEST(FrameBody, AttachmentsOfNoBytesTakeNoRoom) {
  // 24 + 8 + 5 x 8 + 1 = 73; in a zone 0, 1 at 128, 0, 2 at 192, 0.
  const std::string table =
      Bytes(
          "05 00 00 00  01 00 00 00  00 00 00 00 01 00 00 00  01 00 00 00 02 00 00 00"
          "00 00 00 00 03 00 00 00  02 00 00 00 04 00 00 00  00 00 00 00 05 00 00 00") +
      "m";
  const std::string slot = kWithAttachments + table + "abb";
  EXPECT_EQ(Validate(slot, false), FrameDefect::kNone);
  std::vector<Place> places = Read(slot, false).attachments;
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[1], (Place{73, 1, 2}));
  EXPECT_EQ(places[3], (Place{74, 2, 4}));
  for (const size_t empty : {0u, 2u, 4u}) {
    EXPECT_EQ(places[empty].bytes, 0u);
    EXPECT_EQ(places[empty].field, empty + 1);
  }
  std::string zone = kWithAttachments + table;
  zone.resize(128);
  zone += "a";
  zone.resize(192);
  zone += "bb";
  EXPECT_EQ(Validate(zone, true), FrameDefect::kNone);
  places = Read(zone, true).attachments;
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[1], (Place{128, 1, 2}));
  EXPECT_EQ(places[3], (Place{192, 2, 4}));
  // Nothing but such: the frame ends with the message.
  ExpectBoth(kWithAttachments +
                 Bytes("02 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00"
                       "00 00 00 00 00 00 00 00") +
                 "m",
             FrameDefect::kNone);
}

// ---- Defects ----

TEST(FrameBody, FindsATableThatIsCut) {
  std::string zone = kWithAttachments + kTwo;
  zone.resize(64);
  zone += "hello";
  zone.resize(128);
  zone += "data";
  const std::string slot = kWithAttachments + kTwo + "hello" + "data";
  for (size_t size = 24; size < zone.size(); ++size) {
    EXPECT_EQ(Validate(zone.substr(0, size), true), FrameDefect::kAttachments) << size;
  }
  for (size_t size = 24; size < slot.size(); ++size) {
    EXPECT_EQ(Validate(slot.substr(0, size), false), FrameDefect::kAttachments) << size;
  }
  // A zone for the response that is cut is no table, and no grant either.
  const std::string both =
      kWithBoth + kGrant + Bytes("01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  ExpectBoth(both, FrameDefect::kNone);
  for (size_t size = 24; size < both.size(); ++size) {
    EXPECT_EQ(Validate(both.substr(0, size), true), FrameDefect::kAttachments) << size;
  }
}

TEST(FrameBody, FindsATableOfNone) {
  ExpectBoth(kWithAttachments + Bytes("00 00 00 00 00 00 00 00"), FrameDefect::kAttachments);
  ExpectBoth(kWithAttachments + Bytes("00 00 00 00 03 00 00 00") + "abc",
             FrameDefect::kAttachments);
}

TEST(FrameBody, FindsCountsAndSizesThatTheFrameCannotHave) {
  for (const char* count : {"03 00 00 00", "ff ff ff ff", "01 00 00 20", "00 00 00 80"}) {
    ExpectBoth(kWithAttachments + Bytes(count + std::string("00 00 00 00 00 00 00 00 00 00 00 00"
                                                            "00 00 00 00 00 00 00 00")),
               FrameDefect::kAttachments);
  }
  for (const char* message : {"02 00 00 00", "ff ff ff ff", "00 00 00 80"}) {
    ExpectBoth(kWithAttachments +
                   Bytes("01 00 00 00" + std::string(message) + "00 00 00 00 00 00 00 00") + "m",
               FrameDefect::kAttachments);
  }
  for (const char* bytes : {"02 00 00 00", "ff ff ff ff", "00 00 00 80"}) {
    // One byte where it begins, in either layout.
    const std::string frame =
        kResponseWithAttachments +
        Bytes("01 00 00 00 20 00 00 00" + std::string(bytes) + "00 00 00 00") +
        std::string(32, 'm') + "a";
    ExpectBoth(frame, FrameDefect::kAttachments);
  }
  // Sizes whose sum is right modulo 2^32: 24 + 8 + 16, then 1 + (2^32 - 1) + 1.
  ExpectBoth(kWithAttachments +
                 Bytes("02 00 00 00 01 00 00 00 ff ff ff ff 00 00 00 00"
                       "01 00 00 00 00 00 00 00") +
                 "m",
             FrameDefect::kAttachments);
}

TEST(FrameBody, FindsBytesBehindTheLastAttachment) {
  const std::string frame = kResponseWithAttachments +
                            Bytes("01 00 00 00 20 00 00 00 03 00 00 00 00 00 00 00") +
                            std::string(32, 'm') + "abc";
  ExpectBoth(frame, FrameDefect::kNone);
  ExpectBoth(frame + "d", FrameDefect::kAttachments);
  ExpectBoth(frame + std::string(61, '\0'), FrameDefect::kAttachments);
  // Of no bytes, at the end: there is nothing to align.
  const std::string empty =
      kResponseWithAttachments + Bytes("01 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00") + "m";
  ExpectBoth(empty, FrameDefect::kNone);
  ExpectBoth(empty + std::string(31, '\0'), FrameDefect::kAttachments);
}

// ---- A frame that changes after it was found valid, as a peer can do in shared memory ----

TEST(FrameBody, NeverLeavesTheFrameWhateverItSays) {
  Random random(20260103);
  uint64_t inside = 0;
  for (int i = 0; i < 300'000; ++i) {
    const bool landed = random.Below(2) != 0;
    std::string frame(24 + random.Below(200), '\0');
    for (char& c : frame) c = static_cast<char>(random.Below(random.Below(3) != 0 ? 6 : 256));
    frame[0] = static_cast<char>(1 + random.Below(2));
    frame[1] = static_cast<char>(random.Below(4));
    if (frame[0] == 2) frame[1] &= 2;
    const size_t table = (frame[0] == 1 ? 24 : 16) + ((frame[1] & 1) != 0 ? 24 : 0);
    // The high bytes of counts and sizes are zero, mostly, or nothing would ever fit.
    for (size_t at = table; at + 4 <= frame.size(); at += 4) {
      if (random.Below(16) != 0) frame[at + 1] = frame[at + 2] = frame[at + 3] = '\0';
    }
    const ExactFrame exact(frame);
    FrameBody body(exact.span(), landed);
    uint64_t sum = 0;
    for (const std::byte byte : body.message()) sum += static_cast<uint64_t>(byte);
    for (uint32_t next = 0; next < body.attachment_count(); ++next) {
      // The peer writes to it while we read.
      if (random.Below(4) == 0) {
        exact.span()[random.Below(frame.size())] = static_cast<std::byte>(random.Below(256));
      }
      size_t offset;
      uint32_t bytes, field;
      if (!body.NextAttachment(&offset, &bytes, &field)) break;
      ASSERT_LE(offset, frame.size());
      ASSERT_LE(bytes, frame.size() - offset);
      if (landed && bytes != 0) {
        ASSERT_EQ(offset % 64, 0u);
      }
      for (const std::byte byte : exact.span().subspan(offset, bytes)) {
        sum += static_cast<uint64_t>(byte);
      }
      inside += bytes != 0;
    }
    ASSERT_LT(sum, uint64_t{1} << 32);
  }
  EXPECT_GT(inside, 10'000u) << "too few frames get so far";
}

}  // namespace
}  // namespace verbena
