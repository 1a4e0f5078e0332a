// SPDX-License-Identifier: Apache-2.0
//
// What a real server does with zones, and with what a client writes there: docs/wire_protocol.md,
// section 5. late_writer_test.cc has the clients that write when they must not.

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/base/random.h"
#include "verbena/tests/protocol/server_fixture.h"
#include "verbena/tests/support/pattern.h"
#include "verbena/tests/support/thread_executor.h"
#include "verbena/transport/buffer_pool.h"

namespace verbena {
namespace {

constexpr std::chrono::milliseconds kNotYet{100};  // For what must not happen to happen.

class ServerPayload : public ServerProtocolTest {
 protected:
  ~ServerPayload() override {
    go_on_ = true;
    peer_.reset();
    if (server_ != nullptr) Shutdown();
  }

  // "long N" is answered with N bytes, "attach N M ..." with attachments of these sizes, "wait"
  // when go_on_ says so or the call is cancelled; everything else with its size. Attachments are
  // written down.
  void Start(const std::function<void(ServerOptions&)>& change = [](ServerOptions&) {}) {
    StartServer([this](ServerContext* context, const std::string& request,
                       std::string* response) { return Handle(context, request, response); },
                change);
  }
  void StartOnExecutor() {
    Start([this](ServerOptions& options) { options.executor = &executor_; });
  }

  absl::Status Handle(ServerContext* context, const std::string& request, std::string* response) {
    {
      std::lock_guard lock(mutex_);
      attached_.clear();
      for (const Attachment& attachment : context->attachments()) {
        attached_.emplace_back(reinterpret_cast<const char*>(attachment.buffer.data()),
                               attachment.buffer.size());
      }
    }
    if (request.starts_with("long ")) {
      response->assign(static_cast<size_t>(std::stoi(request.substr(5))), 'r');
    } else if (request.starts_with("attach ")) {
      for (size_t at = 7; at < request.size(); at = request.find(' ', at) + 1) {
        const auto bytes = static_cast<size_t>(std::stoi(request.substr(at)));
        Buffer buffer = Must(pool_.Allocate(bytes));
        std::fill(buffer.span().begin(), buffer.span().end(), std::byte{'a'});
        context->AddResponseAttachment(std::move(buffer));
        if (request.find(' ', at) == std::string::npos) break;
      }
      *response = "with";
    } else {
      if (request == "wait") {
        ++waiting_;
        WaitUntil([&] { return go_on_ || context->IsCancelled(); });
        --waiting_;
      }
      *response = request == "still there?" ? request : absl::StrCat(request.size());
    }
    return absl::OkStatus();
  }
  std::vector<std::string> Attached() {
    std::lock_guard lock(mutex_);
    return attached_;
  }

  ZoneHeader AwaitZone() { return HeaderOf<ZoneHeader>(peer_->AwaitKind(FrameKind::kZone)); }
  ZoneGrant GetZone(uint32_t call_id, uint64_t bytes) {
    peer_->Send(WantZoneFrame(call_id, bytes));
    return AwaitZone().zone;
  }
  void Land(const ZoneGrant& zone, const Frame& frame) {
    peer_->WriteWithImm(zone, 0, InZone(frame), zone.immediate);
  }
  // What the peer's process only does when it is wrong: an immediate of its own, and nothing else.
  void SendImmediate(uint32_t immediate) { peer_->WriteWithImm({}, 0, {}, immediate); }
  Frame AwaitResponseFrame() { return peer_->AwaitKind(FrameKind::kResponse); }
  Answer AwaitResponse() {
    const Frame frame = AwaitResponseFrame();
    const auto header = HeaderOf<ResponseHeader>(frame);
    const std::string text = PayloadOf<ResponseHeader>(frame);
    return {header.frame.call_id,
            absl::Status(static_cast<absl::StatusCode>(header.status_code), text), text};
  }
  void ExpectClose(FrameDefect defect) {
    const Frame close = peer_->AwaitKind(FrameKind::kClose);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).reason, CloseHeader::Reason::kProtocolError);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).detail, static_cast<uint32_t>(defect))
        << FrameDefectName(static_cast<FrameDefect>(HeaderOf<CloseHeader>(close).detail));
    peer_->AwaitDisconnected();
    EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  }
  // Time for what must not happen.
  void StepQuietly() {
    const auto end = std::chrono::steady_clock::now() + kNotYet;
    while (std::chrono::steady_clock::now() < end) {
      peer_->Step();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  BufferPool pool_;
  std::atomic<bool> go_on_{false};
  std::atomic<int> waiting_{0};
  std::mutex mutex_;
  std::vector<std::string> attached_;
  ThreadExecutor executor_{2};
};

Frame WithoutCredits(Frame frame) {
  frame[2] = frame[3] = std::byte{0};
  return frame;
}

// ---- Requests ----

TEST_F(ServerPayload, ReceiveWantZoneExpectAZone) {
  Start();
  OpenPeer().Send(WantZoneFrame(0x1003, 100'000));
  const ZoneHeader header = AwaitZone();
  EXPECT_EQ(header.frame.call_id, 0x1003u);
  EXPECT_EQ(Immediate(header.zone.immediate).kind(), 1u);
  EXPECT_NE(header.zone.address, 0u);
  EXPECT_GE(header.zone.length, 100'000u);
  EXPECT_LE(header.zone.length, 112'500u) << "an eighth more";
}

TEST_F(ServerPayload, ReceiveManyWantsExpectThatNoTwoZonesOverlap) {
  Start();
  OpenPeer();
  std::vector<ZoneGrant> zones;
  std::set<uint32_t> names;
  for (uint32_t call = 1; call <= 20; ++call) {
    peer_->Send(WantZoneFrame(call, call * 20'000));
    const ZoneHeader header = AwaitZone();
    EXPECT_EQ(header.frame.call_id, call);
    EXPECT_TRUE(names.insert(header.zone.immediate).second);
    for (const ZoneGrant& other : zones) {
      EXPECT_TRUE(other.address + other.length <= header.zone.address ||
                  header.zone.address + header.zone.length <= other.address);
    }
    zones.push_back(header.zone);
  }
}

TEST_F(ServerPayload, ReceiveWantZoneForAPrefixAndNoMoreExpectZoneGrant) {
  logs_.Allow("the peer broke the protocol");
  Start();
  for (const uint64_t bytes : {0, 1, 64}) {
    OpenPeer().Send(Request(1, "open"));
    AwaitResponse();
    peer_->Send(WantZoneFrame(1, bytes));
    ExpectClose(FrameDefect::kZoneGrant);
  }
}

TEST_F(ServerPayload, ReceiveARequestInAZoneExpectItsResponseAndTheZoneAgain) {
  Start();
  OpenPeer();
  ZoneGrant zone = GetZone(1, 100'000);
  for (uint32_t call = 1; call <= 20; ++call) {
    Land(zone, Request(call, std::string(90'000 + call, 'q')));
    const Answer answer = AwaitResponse();
    EXPECT_EQ(answer.call_id, call);
    EXPECT_EQ(answer.text, absl::StrCat(90'000 + call));
    const ZoneHeader again = AwaitZone();
    EXPECT_EQ(again.frame.call_id, 0u) << "of no call";
    EXPECT_EQ(again.zone.length, zone.length);
    EXPECT_NE(again.zone.immediate, zone.immediate);
    zone = again.zone;
  }
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kZone), 0u) << "as many as were wanted at once";
}

// The first frame may overtake the event that says that the connection is there.
TEST_F(ServerPayload, ReceiveWantZoneFirstOfAllExpectThatItGrantsAheadAllTheSame) {
  Start();
  for (int i = 0; i < 20; ++i) {
    MakePeer().ConnectAndOpen(address_);
    Land(GetZone(1, 20'000), Request(1, "first"));
    EXPECT_EQ(AwaitResponse().call_id, 1u);
    EXPECT_EQ(AwaitZone().frame.call_id, 0u);
    peer_->Disconnect();
  }
}

TEST_F(ServerPayload, ReceiveAnotherCallInAZoneThanItWasGrantedForExpectItsResponse) {
  Start();
  OpenPeer();
  Land(GetZone(7, 100'000), Request(8, "short"));
  const Answer answer = AwaitResponse();
  EXPECT_EQ(answer.call_id, 8u);
  EXPECT_EQ(answer.text, "5");
}

TEST_F(ServerPayload, ReceiveAWriteAndALandedFrameExpectTheSame) {
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, 100'000);
  peer_->Write(zone, 0, InZone(Request(1, std::string(99'000, 'q'))));
  peer_->Send(ZoneNoteFrame(FrameKind::kLanded, zone.immediate));
  EXPECT_EQ(AwaitResponse().text, "99000");
}

TEST_F(ServerPayload, ReceiveAMessageInPiecesInAnyOrderExpectItsResponse) {
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, 100'000);
  const Frame bytes = InZone(Request(1, std::string(99'000, 'q')));
  const std::span<const std::byte> all(bytes);
  peer_->Write(zone, 50'000, all.subspan(50'000));
  peer_->Write(zone, 0, all.first(10'000));
  peer_->WriteWithImm(zone, 10'000, all.subspan(10'000, 40'000), zone.immediate);
  EXPECT_EQ(AwaitResponse().text, "99000");
}

TEST_F(ServerPayload, ReceiveAMessageBehindAGapExpectItsResponse) {
  Start();
  OpenPeer();
  for (const uint64_t gap_bytes : {8, 32, 56}) {
    const ZoneGrant zone = GetZone(1, 100'000);
    Frame bytes = InZone(Request(1, std::string(99'000, 'q')));
    std::memcpy(bytes.data() + 8, &gap_bytes, sizeof(gap_bytes));
    bytes.insert(bytes.begin() + sizeof(LandingPrefix), gap_bytes, std::byte{0xee});
    peer_->WriteWithImm(zone, 0, bytes, zone.immediate);
    EXPECT_EQ(AwaitResponse().text, "99000") << gap_bytes;
  }
}

TEST_F(ServerPayload, ReceiveAttachmentsInASlotExpectThatTheHandlerHasThem) {
  Start();
  OpenPeer().Send(WithBody(Request(1, ""), {.message = "with", .attachments = {"one", "", "3"}}));
  EXPECT_EQ(AwaitResponse().text, "4");
  EXPECT_EQ(Attached(), (std::vector<std::string>{"one", "", "3"}));
}

TEST_F(ServerPayload, ReceiveAttachmentsInAZoneExpectThatTheHandlerHasThem) {
  Start();
  OpenPeer();
  const std::vector<std::string> attachments = {std::string(70'001, 'x'), "", "y",
                                                std::string(64, 'z')};
  Land(GetZone(1, 100'000),
       WithBody(Request(1, ""), {.message = "with", .attachments = attachments, .landed = true}));
  EXPECT_EQ(AwaitResponse().text, "4");
  EXPECT_EQ(Attached(), attachments);
}

TEST_F(ServerPayload, ReceiveGarbageInAZoneExpectInvalidArgumentAndTheZoneAgain) {
  Start();
  OpenPeer();
  Land(GetZone(1, 100'000), Request(1, "\xff"));
  EXPECT_THAT(AwaitResponse().status,
              Is(absl::StatusCode::kInvalidArgument, "the request of test.Text/Call"));
  Land(AwaitZone().zone, Request(2, "good again"));
  EXPECT_EQ(AwaitResponse().text, "10");
}

// ---- Responses ----

TEST_F(ServerPayload, AResponseWithAttachmentsThatFitsASlotComesInIt) {
  Start();
  OpenPeer().Send(Request(9, "attach 3 0 5"));
  EXPECT_EQ(
      WithoutCredits(AwaitResponseFrame()),
      WithBody(ResponseFrame(9, 0, ""), {.message = "with", .attachments = {"aaa", "", "aaaaa"}}));
}

TEST_F(ServerPayload, ReceiveAZoneInTheRequestExpectTheLongResponseThere) {
  Start();
  OpenPeer();
  const ZoneGrant zone = peer_->OfferZone(100'000);
  peer_->Send(WithBody(Request(9, ""), {.message = "long 90000", .reply_zone = &zone}));
  EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
  EXPECT_TRUE(FromZone(peer_->ZoneBytes(zone)) == ResponseFrame(9, 0, std::string(90'000, 'r')));
  // And a short one in a slot.
  const ZoneGrant other = peer_->OfferZone(100'000);
  peer_->Send(WithBody(Request(10, ""), {.message = "long 9", .reply_zone = &other}));
  EXPECT_EQ(AwaitResponse().text, "rrrrrrrrr");
  EXPECT_EQ(peer_->ImmediatesWaiting(), 0u);
}

TEST_F(ServerPayload, AttachmentsOfALongResponseBeginAtMultiplesOf64) {
  Start();
  OpenPeer();
  const ZoneGrant zone = peer_->OfferZone(200'000);
  peer_->Send(WithBody(Request(9, ""), {.message = "attach 70001 0 1 150", .reply_zone = &zone}));
  EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
  EXPECT_TRUE(FromZone(peer_->ZoneBytes(zone)) ==
              WithBody(ResponseFrame(9, 0, ""),
                       {.message = "with",
                        .attachments = {std::string(70'001, 'a'), "", "a", std::string(150, 'a')},
                        .landed = true}));
}

TEST_F(ServerPayload, ALongResponseWithoutAZoneAsksForOne) {
  Start();
  OpenPeer().Send(Request(9, "long 90000"));
  const auto want = HeaderOf<WantZoneHeader>(peer_->AwaitKind(FrameKind::kWantZone));
  EXPECT_EQ(want.frame.call_id, 9u);
  EXPECT_EQ(want.bytes, 64u + 16u + 90'000u);
  const ZoneGrant zone = peer_->OfferZone(want.bytes);
  peer_->Send(ZoneFrame(9, zone));
  EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
  EXPECT_TRUE(FromZone(peer_->ZoneBytes(zone)) == ResponseFrame(9, 0, std::string(90'000, 'r')));
}

TEST_F(ServerPayload, AResponseLongerThanItsZoneAsksForALongerOne) {
  Start();
  OpenPeer();
  const ZoneGrant zone = peer_->OfferZone(64 + 16 + 89'999);
  peer_->Send(WithBody(Request(9, ""), {.message = "long 90000", .reply_zone = &zone}));
  const auto want = HeaderOf<WantZoneHeader>(peer_->AwaitKind(FrameKind::kWantZone));
  EXPECT_EQ(want.bytes, 64u + 16u + 90'000u);
  const ZoneGrant longer = peer_->OfferZone(want.bytes);
  peer_->Send(ZoneFrame(9, longer));
  EXPECT_EQ(peer_->AwaitImmediate(), longer.immediate);
  EXPECT_TRUE(FromZone(peer_->ZoneBytes(longer)) == ResponseFrame(9, 0, std::string(90'000, 'r')));
}

TEST_F(ServerPayload, ReceiveZonesAheadExpectALongResponseInTheShortestThatTakesItTheLastFirst) {
  Start();
  OpenPeer();
  const ZoneGrant first = peer_->OfferZone(100'000);
  const ZoneGrant second = peer_->OfferZone(100'000);
  const ZoneGrant longer = peer_->OfferZone(200'000);
  const ZoneGrant shorter = peer_->OfferZone(50'000);
  for (const ZoneGrant& zone : {first, second, longer, shorter}) peer_->Send(ZoneFrame(0, zone));
  for (const ZoneGrant& zone : {second, first, longer}) {
    peer_->Send(Request(9, "long 90000"));
    EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
    EXPECT_TRUE(FromZone(peer_->ZoneBytes(zone)) == ResponseFrame(9, 0, std::string(90'000, 'r')));
  }
  peer_->Send(Request(10, "long 90000"));
  EXPECT_EQ(HeaderOf<WantZoneHeader>(peer_->AwaitKind(FrameKind::kWantZone)).frame.call_id, 10u);
}

TEST_F(ServerPayload, ReceiveAZoneInARequestExpectThatAnyLongResponseMayUseIt) {
  Start();
  OpenPeer();
  const ZoneGrant zone = peer_->OfferZone(100'000);
  peer_->Send(WithBody(Request(1, ""), {.message = "short", .reply_zone = &zone}));
  EXPECT_EQ(AwaitResponse().text, "5");
  peer_->Send(Request(2, "long 90000"));
  EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
  EXPECT_TRUE(FromZone(peer_->ZoneBytes(zone)) == ResponseFrame(2, 0, std::string(90'000, 'r')));
}

TEST_F(ServerPayload, ReceiveARecallOfAnUnusedZoneExpectItsReturn) {
  Start();
  OpenPeer();
  const ZoneGrant zone = peer_->OfferZone(100'000);
  peer_->Send(ZoneFrame(0, zone));
  peer_->Send(ZoneNoteFrame(FrameKind::kRecallZone, zone.immediate));
  EXPECT_EQ(WithoutCredits(peer_->AwaitKind(FrameKind::kReturnZone)),
            ZoneNoteFrame(FrameKind::kReturnZone, zone.immediate));
  // Of one that it does not have: nothing.
  peer_->Send(ZoneNoteFrame(FrameKind::kRecallZone, zone.immediate));
  peer_->Send(Request(9, "long 90000"));
  peer_->AwaitKind(FrameKind::kWantZone);
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kReturnZone), 0u);
}

TEST_F(ServerPayload, ReceiveAZoneShorterThanTheResponseThatWaitsExpectZoneGrant) {
  logs_.Allow("the peer broke the protocol");
  Start();
  OpenPeer().Send(Request(9, "long 90000"));
  peer_->AwaitKind(FrameKind::kWantZone);
  peer_->Send(ZoneFrame(9, peer_->OfferZone(64 + 16 + 89'999)));
  ExpectClose(FrameDefect::kZoneGrant);
  ExpectServesOthers();
}

// ---- Immediates ----

TEST_F(ServerPayload, ReceiveAnImmediateOfAZoneThatWasUsedExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, 100'000);
  Land(zone, Request(1, "once"));
  AwaitResponse();
  SendImmediate(zone.immediate);
  ExpectClose(FrameDefect::kZone);
  ExpectServesOthers();
}

TEST_F(ServerPayload, ReceiveAnImmediateTwiceAtOnceExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, 100'000);
  peer_->Write(zone, 0, InZone(Request(1, "once")));
  peer_->AwaitSent();
  SendImmediate(zone.immediate);
  SendImmediate(zone.immediate);
  ExpectClose(FrameDefect::kZone);
  ExpectServesOthers();
}

TEST_F(ServerPayload, ReceiveAnImmediateOfNoZoneExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Start();
  // Another index, generation and kind than those of the only zone, which is 0x10000000.
  for (const uint32_t immediate : {0x10000001u, 0x10000fffu, 0x10001000u, 0x1ffff000u, 0u,
                                   0x20000000u, 0xf0000000u, 0xffffffffu}) {
    OpenPeer();
    ASSERT_EQ(GetZone(1, 100'000).immediate, 0x10000000u);
    SendImmediate(immediate);
    ExpectClose(FrameDefect::kZone);
  }
  ExpectServesOthers();
}

TEST_F(ServerPayload, ReceiveRandomImmediatesExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Start();
  for (uint64_t seed = 1; seed <= 48; ++seed) {
    Random random(seed);
    OpenPeer({.ring_depth = 16}).Send(Request(1, "open"));
    AwaitResponse();
    uint32_t granted = 0;
    if (seed % 2 == 0) granted = GetZone(1, 20'000).immediate;
    uint32_t immediate = static_cast<uint32_t>(random.Next());
    if (seed % 4 < 2) immediate = 0x10000000u | (immediate & 0x3003);  // Nearly right.
    if (immediate == granted) continue;
    if (seed % 3 == 0) {
      peer_->Send(ZoneNoteFrame(FrameKind::kLanded, immediate));
    } else {
      SendImmediate(immediate);
    }
    ExpectClose(FrameDefect::kZone);
  }
  ExpectServesOthers();
}

// ---- What landed ----

TEST_F(ServerPayload, ReceiveABadFrameInAZoneExpectCloseWithItsDefect) {
  logs_.Allow("the peer broke the protocol");
  Start();
  const Frame good = Request(1, "good");
  const ZoneGrant impossible = {.immediate = 1, .length = 1000};
  Frame bad_table =
      WithBody(Request(1, ""), {.message = "m", .attachments = {"a"}, .landed = true});
  bad_table[24] = std::byte{2};  // Its count.
  Frame trailing = WithBody(Request(1, ""), {.message = "m", .attachments = {"a"}, .landed = true});
  trailing.push_back(std::byte{0});
  Frame flags = good;
  flags[1] = std::byte{4};
  const auto with_gap = [&](uint64_t gap_bytes) {
    Frame frame = InZone(good);
    std::memcpy(frame.data() + 8, &gap_bytes, sizeof(gap_bytes));
    frame.insert(frame.begin() + sizeof(LandingPrefix), gap_bytes < 64 ? gap_bytes : 0,
                 std::byte{0});
    return frame;
  };
  Frame gap_to_the_end = InZone(good, 106'496 - 64 - 48);
  gap_to_the_end[8] = std::byte{56};
  Frame reserved = InZone(good);
  reserved[16] = std::byte{1};
  Frame reserved_last = InZone(good);
  reserved_last[63] = std::byte{0x80};
  constexpr uint64_t kZoneBytes = 106'496;  // Thirteen sixteenths of 128 KiB.
  const std::vector<std::pair<Frame, FrameDefect>> cases = {
      {InZone(good, kZoneBytes - 63), FrameDefect::kLanded},
      {InZone(good, kZoneBytes), FrameDefect::kLanded},
      {InZone(good, uint64_t{1} << 32), FrameDefect::kLanded},
      {InZone(good, ~uint64_t{0}), FrameDefect::kLanded},
      {InZone(good, 7), FrameDefect::kLanded},
      {InZone(good, 0), FrameDefect::kLanded},
      {InZone(good, 8), FrameDefect::kShort},
      {InZone(good, 23), FrameDefect::kShort},
      {InZone(CancelFrame(1)), FrameDefect::kLanded},
      {InZone(GrantFrame(0)), FrameDefect::kLanded},
      {InZone(CloseFrame(CloseHeader::Reason::kGoingAway)), FrameDefect::kLanded},
      {InZone(WantZoneFrame(1, 100)), FrameDefect::kLanded},
      {InZone(HexFrame("00 00 00 00 00 00 00 00")), FrameDefect::kLanded},
      {InZone(HexFrame("ff 00 00 00 01 00 00 00")), FrameDefect::kLanded},
      {InZone(ResponseFrame(1, 0, "turned round")), FrameDefect::kWrongDirection},
      {InZone(Request(1, "credits", kNoTimeout, 1)), FrameDefect::kReservedBits},
      {InZone(Request(0, "of no call")), FrameDefect::kCallId},
      {InZone(flags), FrameDefect::kReservedBits},
      {InZone(bad_table), FrameDefect::kAttachments},
      {InZone(trailing), FrameDefect::kAttachments},
      {InZone(WithBody(Request(1, ""), {.message = "m", .reply_zone = &impossible})),
       FrameDefect::kZoneGrant},
      {with_gap(4), FrameDefect::kLanded},
      {with_gap(60), FrameDefect::kLanded},
      {with_gap(64), FrameDefect::kLanded},
      {with_gap(uint64_t{1} << 63), FrameDefect::kLanded},
      {gap_to_the_end, FrameDefect::kLanded},
      {reserved, FrameDefect::kReservedBits},
      {reserved_last, FrameDefect::kReservedBits},
  };
  int number = 0;
  for (const auto& [bytes, defect] : cases) {
    SCOPED_TRACE(number++);
    OpenPeer();
    const ZoneGrant zone = GetZone(1, 100'000);
    ASSERT_EQ(zone.length, kZoneBytes);
    peer_->WriteWithImm(zone, 0, bytes, zone.immediate);
    ExpectClose(defect);
  }
  EXPECT_EQ(server_->statistics().calls_started, 0u);
  EXPECT_EQ(server_->statistics().protocol_errors, cases.size());
  ExpectServesOthers();
}

// ---- Recalls and returns ----

TEST_F(ServerPayload, ReceiveAReturnThatNobodyAskedForExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Start();
  OpenPeer();
  peer_->Send(ZoneNoteFrame(FrameKind::kReturnZone, GetZone(1, 100'000).immediate));
  ExpectClose(FrameDefect::kZone);
  OpenPeer().Send(Request(1, "open"));
  AwaitResponse();
  peer_->Send(ZoneNoteFrame(FrameKind::kReturnZone, 0x10000000));
  ExpectClose(FrameDefect::kZone);
  ExpectServesOthers();
}

TEST_F(ServerPayload, AZoneThatNobodyUsesIsRecalledAndItsReturnIsAccepted) {
  logs_.Allow("the peer broke the protocol");
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, 100'000);
  const Frame recall = peer_->AwaitKind(FrameKind::kRecallZone);
  EXPECT_EQ(WithoutCredits(recall), ZoneNoteFrame(FrameKind::kRecallZone, zone.immediate));
  peer_->Send(ZoneNoteFrame(FrameKind::kReturnZone, zone.immediate));
  Land(GetZone(2, 100'000), Request(2, "after it"));
  EXPECT_EQ(AwaitResponse().text, "8");
  // It is none any more.
  SendImmediate(zone.immediate);
  ExpectClose(FrameDefect::kZone);
}

TEST_F(ServerPayload, AZoneThatIsRecalledMayBeUsedInsteadAndIsNotGrantedAgain) {
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, 100'000);
  peer_->AwaitKind(FrameKind::kRecallZone);
  Land(zone, Request(1, "at the last moment"));
  EXPECT_EQ(AwaitResponse().text, "18");
  StepQuietly();
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kZone), 0u);
  Land(GetZone(2, 100'000), Request(2, "again"));
  EXPECT_EQ(AwaitResponse().text, "5");
  EXPECT_EQ(AwaitZone().frame.call_id, 0u);
}

// ---- Memory ----

constexpr uint64_t kBudget = uint64_t{1} << 20;
// Of two such zones one fits.
constexpr uint64_t kMoreThanHalf = 600'000;

void SetBudget(ServerOptions& options) { options.endpoint.payload_bytes_max = kBudget; }

TEST_F(ServerPayload, ReceiveAWantOverTheBudgetExpectResourceExhaustedWithItsSize) {
  Start(SetBudget);
  OpenPeer().Send(WantZoneFrame(7, 2 * kBudget));
  const Answer answer = AwaitResponse();
  EXPECT_EQ(answer.call_id, 7u);
  EXPECT_THAT(answer.status,
              Is(absl::StatusCode::kResourceExhausted, "the memory budget of the connection"));
  EXPECT_THAT(answer.status, Is(absl::StatusCode::kResourceExhausted, "1048576"));
  Land(GetZone(8, kMoreThanHalf), Request(8, "fits"));
  EXPECT_EQ(AwaitResponse().call_id, 8u);
}

TEST_F(ServerPayload, ReceiveAWantLongerThanAnythingExpectResourceExhausted) {
  Start();
  OpenPeer();
  for (const uint64_t bytes : {(uint64_t{1} << 40) + 1, ~uint64_t{0}}) {
    peer_->Send(WantZoneFrame(7, bytes));
    EXPECT_THAT(AwaitResponse().status,
                Is(absl::StatusCode::kResourceExhausted, "longer than any zone"));
  }
}

TEST_F(ServerPayload, AWantThatFitsWhenAnothersMemoryComesBackIsGrantedThen) {
  Start(SetBudget);
  OpenPeer();
  const ZoneGrant zone = GetZone(1, kMoreThanHalf);
  peer_->Send(WantZoneFrame(2, kMoreThanHalf));
  StepQuietly();
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kZone), 0u);
  Land(zone, Request(1, std::string(500'000, 'q')));
  EXPECT_EQ(AwaitResponse().call_id, 1u);
  const ZoneHeader second = AwaitZone();
  EXPECT_EQ(second.frame.call_id, 2u) << "who asked goes before a zone ahead";
  Land(second.zone, Request(2, "second"));
  EXPECT_EQ(AwaitResponse().call_id, 2u);
}

TEST_F(ServerPayload, AWantOfAnotherSizeGetsTheMemoryThatAnIdleZoneHad) {
  Start(SetBudget);
  OpenPeer();
  const ZoneGrant zone = GetZone(1, kMoreThanHalf);
  peer_->Send(WantZoneFrame(2, 900'000));
  peer_->AwaitKind(FrameKind::kRecallZone);
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kZone), 0u);
  peer_->Send(ZoneNoteFrame(FrameKind::kReturnZone, zone.immediate));
  const ZoneHeader second = AwaitZone();
  EXPECT_EQ(second.frame.call_id, 2u);
  EXPECT_GE(second.zone.length, 900'000u);
}

TEST_F(ServerPayload, AWantThatWaitsTooLongExpectResourceExhausted) {
  Start(SetBudget);
  OpenPeer();
  GetZone(1, kMoreThanHalf);
  peer_->Send(WantZoneFrame(2, kMoreThanHalf));
  const Answer answer = AwaitResponse();
  EXPECT_EQ(answer.call_id, 2u);
  EXPECT_THAT(answer.status,
              Is(absl::StatusCode::kResourceExhausted, "the memory budget of the connection"));
}

// ---- Cancels ----

TEST_F(ServerPayload, ReceiveACancelOfAWantThatWaitsExpectNeitherZoneNorAnswer) {
  Start(SetBudget);
  OpenPeer();
  const ZoneGrant zone = GetZone(1, kMoreThanHalf);
  peer_->Send(WantZoneFrame(2, kMoreThanHalf));
  peer_->Send(CancelFrame(2));
  Land(zone, Request(1, "first"));
  EXPECT_EQ(AwaitResponse().call_id, 1u);
  peer_->Send(WantZoneFrame(3, kMoreThanHalf));
  const ZoneHeader third = AwaitZone();
  EXPECT_EQ(third.frame.call_id, 3u);
  Land(third.zone, Request(3, "third"));
  EXPECT_EQ(AwaitResponse().call_id, 3u);
}

TEST_F(ServerPayload, ReceiveACancelOfACallWithAZoneExpectNoAnswerAndThatTheZoneIsForTheNext) {
  StartOnExecutor();
  OpenPeer();
  const ZoneGrant zone = peer_->OfferZone(100'000);
  peer_->Send(WithBody(Request(1, ""), {.message = "wait", .reply_zone = &zone}));
  ASSERT_TRUE(WaitUntil([this] { return waiting_ == 1; }));
  peer_->Send(CancelFrame(1));
  EXPECT_TRUE(WaitUntil([this] { return waiting_ == 0; })) << "the handler is told";
  peer_->Send(Request(2, "long 90000"));
  EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
  EXPECT_TRUE(FromZone(peer_->ZoneBytes(zone)) == ResponseFrame(2, 0, std::string(90'000, 'r')));
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kResponse), 0u);
}

TEST_F(ServerPayload, ReceiveACancelOfAResponseThatWaitsForItsZoneExpectThatALateZoneIsForTheNext) {
  Start();
  OpenPeer().Send(Request(9, "long 90000"));
  peer_->AwaitKind(FrameKind::kWantZone);
  peer_->Send(CancelFrame(9));
  const ZoneGrant zone = peer_->OfferZone(100'000);
  peer_->Send(ZoneFrame(9, zone));
  peer_->Send(Request(10, "next"));
  EXPECT_EQ(AwaitResponse().call_id, 10u) << "and no answer to the cancelled one";
  EXPECT_EQ(peer_->ImmediatesWaiting(), 0u);
  EXPECT_EQ(peer_->ZoneBytes(zone)[0], std::byte{0}) << "the zone was written to";
  peer_->Send(Request(11, "long 80000"));
  EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
  EXPECT_TRUE(FromZone(peer_->ZoneBytes(zone)) == ResponseFrame(11, 0, std::string(80'000, 'r')));
}

TEST_F(ServerPayload, ADeadlineOfACallWithAZoneExpectDeadlineExceeded) {
  StartOnExecutor();
  OpenPeer();
  const ZoneGrant zone = peer_->OfferZone(100'000);
  peer_->Send(
      WithBody(Request(1, "", /*timeout_us=*/20'000), {.message = "wait", .reply_zone = &zone}));
  EXPECT_EQ(AwaitResponse().status.code(), absl::StatusCode::kDeadlineExceeded);
  peer_->Send(CancelFrame(1));
  peer_->Send(Request(2, "next"));
  EXPECT_EQ(AwaitResponse().call_id, 2u);
}

// ---- Peers that vanish ----

TEST_F(ServerPayload, APeerThatVanishesAtAnyStepIsFreed) {
  Start();
  const Frame request = InZone(Request(1, std::string(99'000, 'q')));
  const std::span<const std::byte> bytes(request);
  ZoneGrant zone;
  const std::vector<std::function<void()>> steps = {
      [&] { peer_->Send(WantZoneFrame(1, 100'000)); },
      [&] { peer_->Send(WantZoneFrame(1, 4'000'000)); },  // Made in the background.
      [&] { zone = GetZone(1, 100'000); },
      [&] { zone = GetZone(1, 4'000'000); },
      [&] {
        zone = GetZone(1, 100'000);
        peer_->Write(zone, 0, bytes.first(50'000));
        peer_->AwaitSent();
      },
      [&] {
        zone = GetZone(1, 100'000);
        peer_->Write(zone, 0, bytes);
        peer_->AwaitSent();
      },
      [&] { Land(GetZone(1, 100'000), Request(1, "landed")); },
      [&] {
        Land(GetZone(1, 100'000), Request(1, "landed"));
        peer_->AwaitSent();
      },
      [&] {
        Land(GetZone(1, 100'000), Request(1, "landed"));
        AwaitResponse();
      },
      [&] {
        Land(GetZone(1, 100'000), Request(1, "landed"));
        AwaitZone();
      },
      [&] {
        zone = peer_->OfferZone(4'000'000);
        peer_->Send(WithBody(Request(1, ""), {.message = "long 3900000", .reply_zone = &zone}));
        peer_->AwaitSent();
      },
      [&] {
        zone = peer_->OfferZone(4'000'000);
        peer_->Send(WithBody(Request(1, ""), {.message = "long 3900000", .reply_zone = &zone}));
        peer_->StepUntil([&] { return peer_->ZoneBytes(zone)[0] != std::byte{0}; }, "first bytes");
      },
      [&] { peer_->Send(Request(1, "long 90000")); },
      [&] {
        peer_->Send(Request(1, "long 90000"));
        peer_->AwaitKind(FrameKind::kWantZone);
      },
      [&] {
        peer_->Send(Request(1, "long 90000"));
        peer_->AwaitKind(FrameKind::kWantZone);
        peer_->Send(ZoneFrame(1, peer_->OfferZone(100'000)));
        peer_->AwaitSent();
      },
      [&] {
        peer_->Send(Request(1, "long 90000"));
        peer_->AwaitKind(FrameKind::kWantZone);
        peer_->Send(ZoneFrame(1, peer_->OfferZone(100'000)));
        peer_->AwaitImmediate();
      },
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(i);
    OpenPeer();
    steps[i]();
    peer_->Vanish();
    EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  }
  ExpectServesOthers();
}

}  // namespace
}  // namespace verbena
