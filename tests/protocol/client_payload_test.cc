// SPDX-License-Identifier: Apache-2.0
//
// What a real channel does with zones, and with what a server writes there: docs/wire_protocol.md,
// section 5. late_writer_test.cc has the servers that write when they must not.

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/base/random.h"
#include "verbena/tests/protocol/client_fixture.h"

namespace verbena {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kForever = milliseconds::max();

class ClientPayload : public ClientProtocolTest {
 protected:
  // A channel whose first call was answered.
  void Open(const ChannelOptions& options = {}) {
    MakeServer();
    MakeChannel(options);
    OpenAgain();
  }
  // Its next connection, whose first call was answered.
  void OpenAgain() {
    PendingCall call(*channel_, "open");
    peer_->AcceptAndOpen();
    peer_->Send(ResponseFrame(AwaitCall(), 0, "opened"));
    ASSERT_THAT(call.Await(), IsOk());
  }
  void Reopen() {
    peer_->Renew();
    OpenAgain();
  }
  std::unique_ptr<PendingCall> Start(
      std::string request, milliseconds timeout = kForever,
      const std::function<void(ClientContext&)>& prepare = [](ClientContext&) {}) {
    return std::make_unique<PendingCall>(*channel_, std::move(request), timeout, prepare);
  }
  // A call that may have a response of so many bytes.
  std::unique_ptr<PendingCall> StartExpecting(uint64_t response_bytes,
                                              milliseconds timeout = kForever) {
    return Start("short", timeout,
                 [&](ClientContext& context) { context.set_response_bytes_max(response_bytes); });
  }
  // The call id of the next request in a slot.
  uint32_t AwaitCall() {
    return HeaderOf<FrameHeader>(peer_->AwaitKind(FrameKind::kRequest)).call_id;
  }
  // The next request in a slot, which has a zone for its response.
  struct Asked {
    uint32_t call_id;
    ZoneGrant zone;
  };
  Asked AwaitRequestWithZone() {
    const Frame frame = peer_->AwaitKind(FrameKind::kRequest);
    EXPECT_EQ(frame[1], std::byte{1});
    Asked asked{HeaderOf<FrameHeader>(frame).call_id, {}};
    std::memcpy(&asked.zone, frame.data() + 24, 24);
    EXPECT_EQ(Immediate(asked.zone.immediate).kind(), 1u);
    return asked;
  }
  WantZoneHeader AwaitWant() {
    return HeaderOf<WantZoneHeader>(peer_->AwaitKind(FrameKind::kWantZone));
  }
  ZoneHeader AwaitZone() { return HeaderOf<ZoneHeader>(peer_->AwaitKind(FrameKind::kZone)); }
  void Land(const ZoneGrant& zone, const Frame& frame) { LandBytes(zone, InZone(frame)); }
  // A test that then waits for the channel does not drive the peer.
  void LandBytes(const ZoneGrant& zone, const Frame& bytes) {
    peer_->WriteWithImm(zone, 0, bytes, zone.immediate);
    peer_->AwaitSent();
  }
  void SendImmediate(uint32_t immediate) { peer_->WriteWithImm({}, 0, {}, immediate); }
  // The request in a zone that the peer offered, when it has been announced.
  Frame AwaitLanded(const ZoneGrant& zone) {
    EXPECT_EQ(peer_->AwaitImmediate(), zone.immediate);
    return FromZone(peer_->ZoneBytes(zone));
  }
  // A further call is answered; and so the channel has seen all that was sent before.
  void ExpectStillWorks() {
    PendingCall call(*channel_, "still there?");
    peer_->Send(ResponseFrame(AwaitCall(), 0, "yes"));
    EXPECT_THAT(call.Await(), IsOk());
    EXPECT_EQ(call.response(), "yes");
  }
  void ExpectClose(FrameDefect defect) {
    const Frame close = peer_->AwaitKind(FrameKind::kClose);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).reason, CloseHeader::Reason::kProtocolError);
    EXPECT_EQ(HeaderOf<CloseHeader>(close).detail, static_cast<uint32_t>(defect))
        << FrameDefectName(static_cast<FrameDefect>(HeaderOf<CloseHeader>(close).detail));
    peer_->AwaitDisconnected();
  }
  // The call ends with the connection, which broke the protocol.
  void ExpectClose(FrameDefect defect, PendingCall& call) {
    EXPECT_THAT(call.Await(),
                Is(absl::StatusCode::kInternal, std::string(FrameDefectName(defect))));
    ExpectClose(defect);
  }
};

const std::string kLong(100'000, 'q');

// ---- Requests ----

TEST_F(ClientPayload, ALongRequestAsksForAZoneAndLandsThere) {
  Open();
  auto call = Start(kLong);
  const WantZoneHeader want = AwaitWant();
  EXPECT_NE(want.frame.call_id, 0u);
  EXPECT_EQ(want.bytes, 64u + 24u + 100'000u);
  const ZoneGrant zone = peer_->OfferZone(want.bytes);
  peer_->Send(ZoneFrame(want.frame.call_id, zone));
  EXPECT_TRUE(AwaitLanded(zone) == RequestFrame(want.frame.call_id, kTextMethod.id, kLong));
  peer_->Send(ResponseFrame(want.frame.call_id, 0, "answer"));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_EQ(call->response(), "answer");
}

TEST_F(ClientPayload, ReceiveAZoneAheadExpectThatTheNextLongRequestLandsThereUnasked) {
  Open();
  const ZoneGrant zone = peer_->OfferZone(120'000);
  peer_->Send(ZoneFrame(0, zone));
  ExpectStillWorks();
  auto call = Start(kLong);
  const Frame frame = AwaitLanded(zone);
  peer_->Send(ResponseFrame(HeaderOf<FrameHeader>(frame).call_id, 0, ""));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kWantZone), 0u);
  // A zone is for one message.
  auto second = Start(kLong);
  peer_->Send(ResponseFrame(AwaitWant().frame.call_id, 8, "enough"));
  EXPECT_THAT(second->Await(), Is(absl::StatusCode::kResourceExhausted, "enough"));
}

TEST_F(ClientPayload, AttachmentsInAZoneBeginAtMultiplesOf64) {
  Open();
  std::vector<std::string> attachments = {std::string(70'001, 'x'), "", "y", std::string(64, 'z')};
  auto call = Start("with", kForever, [&](ClientContext& context) {
    for (std::string& attachment : attachments) {
      context.AddAttachment(Buffer::Wrap(std::as_writable_bytes(std::span(attachment))));
    }
  });
  const WantZoneHeader want = AwaitWant();
  // 24 + 8 + 4 x 8 + 4 = 68, so at 128; then at 70'129 up to 70'144, and 70'208.
  EXPECT_EQ(want.bytes, 64u + 70'208u + 64u);
  const ZoneGrant zone = peer_->OfferZone(want.bytes);
  peer_->Send(ZoneFrame(want.frame.call_id, zone));
  EXPECT_TRUE(AwaitLanded(zone) ==
              WithBody(RequestFrame(want.frame.call_id, kTextMethod.id, ""),
                       {.message = "with", .attachments = attachments, .landed = true}));
  peer_->Send(ResponseFrame(want.frame.call_id, 0, ""));
  EXPECT_THAT(call->Await(), IsOk());
}

TEST_F(ClientPayload, ShortAttachmentsGoInASlot) {
  Open();
  std::vector<std::string> attachments = {"one", "", "3"};
  auto call = Start("with", kForever, [&](ClientContext& context) {
    for (std::string& attachment : attachments) {
      context.AddAttachment(Buffer::Wrap(std::as_writable_bytes(std::span(attachment))));
    }
  });
  Frame frame = peer_->AwaitKind(FrameKind::kRequest);
  frame[2] = frame[3] = std::byte{0};
  const uint32_t id = HeaderOf<FrameHeader>(frame).call_id;
  EXPECT_EQ(frame, WithBody(RequestFrame(id, kTextMethod.id, ""),
                            {.message = "with", .attachments = attachments}));
  peer_->Send(ResponseFrame(id, 0, ""));
  EXPECT_THAT(call->Await(), IsOk());
}

TEST_F(ClientPayload, AServerThatHasNoRoomExpectThatTheRequestIsGivenUpAndALateZoneIsForTheNext) {
  Open();
  auto call = Start(kLong);
  const uint32_t id = AwaitWant().frame.call_id;
  peer_->Send(ResponseFrame(id, 8, "no room"));
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kResourceExhausted, "no room"));
  const ZoneGrant zone = peer_->OfferZone(120'000);
  peer_->Send(ZoneFrame(id, zone));
  ExpectStillWorks();
  EXPECT_EQ(peer_->ImmediatesWaiting(), 0u) << "a request that has ended was sent";
  auto next = Start(kLong);
  const Frame frame = AwaitLanded(zone);
  EXPECT_NE(HeaderOf<FrameHeader>(frame).call_id, id);
  peer_->Send(ResponseFrame(HeaderOf<FrameHeader>(frame).call_id, 0, ""));
  EXPECT_THAT(next->Await(), IsOk());
}

TEST_F(ClientPayload, TryCancelOfARequestThatWaitsForAZoneExpectThatALateZoneIsForTheNext) {
  Open();
  auto call = Start(kLong);
  const uint32_t id = AwaitWant().frame.call_id;
  call->context().TryCancel();
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kCancelled, "cancelled"));
  EXPECT_EQ(peer_->AwaitKind(FrameKind::kCancel), CancelFrame(id));
  const ZoneGrant zone = peer_->OfferZone(120'000);
  peer_->Send(ZoneFrame(id, zone));
  ExpectStillWorks();
  auto next = Start(kLong);
  const Frame frame = AwaitLanded(zone);
  EXPECT_NE(HeaderOf<FrameHeader>(frame).call_id, id);
  peer_->Send(ResponseFrame(HeaderOf<FrameHeader>(frame).call_id, 0, ""));
  EXPECT_THAT(next->Await(), IsOk());
}

// ---- Grants ----

TEST_F(ClientPayload, ReceiveAZoneShorterThanTheRequestThatWaitsExpectZoneGrant) {
  logs_.Allow("the peer broke the protocol");
  Open();
  auto call = Start(kLong);
  const WantZoneHeader want = AwaitWant();
  peer_->Send(ZoneFrame(want.frame.call_id, peer_->OfferZone(want.bytes - 1)));
  ExpectClose(FrameDefect::kZoneGrant, *call);
  Reopen();
}

TEST_F(ClientPayload, ReceiveAnImpossibleGrantExpectZoneGrant) {
  logs_.Allow("the peer broke the protocol");
  Open();
  const ZoneGrant good = peer_->OfferZone(120'000);
  std::vector<ZoneGrant> bad(5, good);
  bad[0].immediate = 5;
  bad[1].immediate = 0x20000000;
  bad[2].length = 64;
  bad[3].length = 0;
  bad[4].length = ~uint64_t{0};
  for (const ZoneGrant& zone : bad) {
    peer_->Send(ZoneFrame(0, zone));
    ExpectClose(FrameDefect::kZoneGrant);
    Reopen();
  }
}

TEST_F(ClientPayload, ReceiveAGrantOfMemoryThatIsNotOpenExpectUnavailable) {
  Open();
  auto call = Start(kLong);
  const uint32_t id = AwaitWant().frame.call_id;
  ZoneGrant zone = peer_->OfferZone(120'000);
  zone.remote_key ^= 0x5500;
  peer_->Send(ZoneFrame(id, zone));
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kUnavailable, "may have run"));
  Reopen();
}

TEST_F(ClientPayload, ReceiveARecallOfAnUnusedZoneExpectItsReturn) {
  Open();
  const ZoneGrant kept = peer_->OfferZone(120'000);
  const ZoneGrant zone = peer_->OfferZone(120'000);
  peer_->Send(ZoneFrame(0, zone));
  peer_->Send(ZoneFrame(0, kept));
  peer_->Send(ZoneNoteFrame(FrameKind::kRecallZone, zone.immediate));
  EXPECT_EQ(peer_->AwaitKind(FrameKind::kReturnZone).size(), 16u);
  // Of one that it does not have: nothing.
  peer_->Send(ZoneNoteFrame(FrameKind::kRecallZone, zone.immediate));
  peer_->Send(ZoneNoteFrame(FrameKind::kRecallZone, 0x1ffffffe));
  ExpectStillWorks();
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kReturnZone), 0u);
  auto call = Start(kLong);
  peer_->Send(ResponseFrame(HeaderOf<FrameHeader>(AwaitLanded(kept)).call_id, 0, ""));
  EXPECT_THAT(call->Await(), IsOk());
}

// ---- Responses ----

TEST_F(ClientPayload, ACallForALongResponseCarriesAZoneWhereItLands) {
  Open();
  auto call = StartExpecting(100'000);
  const Asked asked = AwaitRequestWithZone();
  EXPECT_GE(asked.zone.length, 64u + 16u + 100'000u);
  Land(asked.zone, ResponseFrame(asked.call_id, 0, kLong));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_TRUE(call->response() == kLong);
  ExpectStillWorks();
}

TEST_F(ClientPayload, ACallForAShortResponseCarriesNone) {
  Open();
  auto call = StartExpecting(4096 - 16);
  const Frame frame = peer_->AwaitKind(FrameKind::kRequest);
  EXPECT_EQ(frame[1], std::byte{0});
  peer_->Send(ResponseFrame(HeaderOf<FrameHeader>(frame).call_id, 0, ""));
  EXPECT_THAT(call->Await(), IsOk());
}

TEST_F(ClientPayload, ReceiveAttachmentsInAZoneExpectThem) {
  Open();
  auto call = StartExpecting(100'000);
  const Asked asked = AwaitRequestWithZone();
  const std::vector<std::string> attachments = {std::string(70'001, 'x'), "", "y",
                                                std::string(64, 'z')};
  Land(asked.zone, WithBody(ResponseFrame(asked.call_id, 0, ""),
                            {.message = "with", .attachments = attachments, .landed = true}));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_EQ(call->response(), "with");
  const AttachmentList& got = call->context().response_attachments();
  ASSERT_EQ(got.size(), attachments.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto want = std::as_bytes(std::span(attachments[i]));
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got[i].buffer.data(),
                           got[i].buffer.data() + got[i].buffer.size()))
        << i;
  }
}

TEST_F(ClientPayload, ReceiveWantZoneExpectAZoneForTheCall) {
  Open();
  auto call = Start("short");
  const uint32_t id = AwaitCall();
  peer_->Send(WantZoneFrame(id, 64 + 16 + 100'000));
  const ZoneHeader header = AwaitZone();
  EXPECT_EQ(header.frame.call_id, id);
  EXPECT_GE(header.zone.length, 64u + 16u + 100'000u);
  Land(header.zone, ResponseFrame(id, 0, kLong));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_TRUE(call->response() == kLong);
}

TEST_F(ClientPayload, ReceiveWantZoneOfNoCallExpectNothing) {
  Open();
  auto call = Start("short");
  const uint32_t id = AwaitCall();
  peer_->Send(ResponseFrame(id, 0, "done"));
  EXPECT_THAT(call->Await(), IsOk());
  for (const uint32_t wrong : {id, id ^ 1u, 0xffffffffu, 1u}) {
    peer_->Send(WantZoneFrame(wrong, 100'000));
  }
  peer_->Send(WantZoneFrame(1, ~uint64_t{0}));
  ExpectStillWorks();
  EXPECT_EQ(peer_->FramesWaiting(FrameKind::kZone), 0u);
}

TEST_F(ClientPayload, ReceiveAnotherCallsResponseInAZoneExpectItAndThatTheFirstGoesOn) {
  Open();
  auto first = StartExpecting(100'000);
  const Asked asked = AwaitRequestWithZone();
  auto second = Start("short");
  const uint32_t id = AwaitCall();
  Land(asked.zone, ResponseFrame(id, 0, kLong));
  EXPECT_THAT(second->Await(), IsOk());
  EXPECT_TRUE(second->response() == kLong);
  peer_->Send(ResponseFrame(asked.call_id, 0, "in a slot"));
  EXPECT_THAT(first->Await(), IsOk());
  EXPECT_EQ(first->response(), "in a slot");
}

TEST_F(ClientPayload, ReceiveAResponseInAZoneForACallThatHasEndedExpectThatItIsDropped) {
  Open();
  auto call = StartExpecting(100'000);
  const Asked asked = AwaitRequestWithZone();
  Land(asked.zone, ResponseFrame(asked.call_id ^ 1, 0, kLong));
  ExpectStillWorks();
  EXPECT_FALSE(call->done());
  peer_->Send(ResponseFrame(asked.call_id, 0, "right"));
  EXPECT_THAT(call->Await(), IsOk());
  EXPECT_EQ(call->response(), "right");
}

TEST_F(ClientPayload, ReceiveAWantOverTheBudgetExpectResourceExhaustedAndACancel) {
  ChannelOptions options;
  options.endpoint.payload_bytes_max = uint64_t{1} << 20;
  Open(options);
  auto call = Start("short");
  const uint32_t id = AwaitCall();
  peer_->Send(WantZoneFrame(id, uint64_t{2} << 20));
  EXPECT_THAT(call->Await(),
              Is(absl::StatusCode::kResourceExhausted, "the memory budget of the connection"));
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kResourceExhausted, "1048576"));
  EXPECT_EQ(peer_->AwaitKind(FrameKind::kCancel), CancelFrame(id));
  ExpectStillWorks();
}

// ---- Immediates, and what landed ----

TEST_F(ClientPayload, ReceiveAnImmediateOfNoZoneExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Open();
  for (const uint32_t immediate : {0x10000000u, 0u, 0xffffffffu}) {
    auto call = Start("short");
    AwaitCall();
    SendImmediate(immediate);
    ExpectClose(FrameDefect::kZone, *call);
    Reopen();
  }
}

TEST_F(ClientPayload, ReceiveAnImmediateOfAZoneThatWasUsedExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Open();
  auto call = StartExpecting(100'000);
  const Asked asked = AwaitRequestWithZone();
  Land(asked.zone, ResponseFrame(asked.call_id, 0, kLong));
  EXPECT_THAT(call->Await(), IsOk());
  SendImmediate(asked.zone.immediate);
  ExpectClose(FrameDefect::kZone);
  EXPECT_TRUE(WaitUntil([&] { return channel_->statistics().disconnects == 1; }));
  Reopen();
}

TEST_F(ClientPayload, ReceiveRandomImmediatesExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Open();
  for (uint64_t seed = 1; seed <= 32; ++seed) {
    Random random(seed);
    auto call = StartExpecting(seed % 2 == 0 ? 20'000 : 1);
    const Frame request = peer_->AwaitKind(FrameKind::kRequest);
    uint32_t granted = 0;
    if (seed % 2 == 0) std::memcpy(&granted, request.data() + 24, 4);
    uint32_t immediate = static_cast<uint32_t>(random.Next());
    if (seed % 4 < 2) immediate = 0x10000000u | (immediate & 0x3003);  // Nearly right.
    if (immediate == granted) immediate ^= 1;
    if (seed % 3 == 0) {
      peer_->Send(ZoneNoteFrame(FrameKind::kLanded, immediate));
    } else {
      SendImmediate(immediate);
    }
    ExpectClose(FrameDefect::kZone, *call);
    Reopen();
  }
}

TEST_F(ClientPayload, ReceiveABadFrameInAZoneExpectCloseWithItsDefect) {
  logs_.Allow("the peer broke the protocol");
  Open();
  using Make = std::function<Frame(const Asked&)>;
  const auto good = [](const Asked& asked) { return ResponseFrame(asked.call_id, 0, "good"); };
  const std::vector<std::pair<Make, FrameDefect>> cases = {
      {[&](const Asked& asked) { return InZone(good(asked), asked.zone.length - 63); },
       FrameDefect::kLanded},
      {[&](const Asked& asked) { return InZone(good(asked), ~uint64_t{0}); }, FrameDefect::kLanded},
      {[&](const Asked& asked) { return InZone(good(asked), 0); }, FrameDefect::kLanded},
      {[&](const Asked& asked) { return InZone(good(asked), 15); }, FrameDefect::kShort},
      {[](const Asked& asked) { return InZone(CancelFrame(asked.call_id)); }, FrameDefect::kLanded},
      {[](const Asked&) { return InZone(GrantFrame(0)); }, FrameDefect::kLanded},
      {[](const Asked& asked) { return InZone(RequestFrame(asked.call_id, 1, "turned round")); },
       FrameDefect::kWrongDirection},
      {[](const Asked& asked) { return InZone(ResponseFrame(asked.call_id, 17, "")); },
       FrameDefect::kStatusCode},
      {[](const Asked& asked) { return InZone(ResponseFrame(asked.call_id, 0, "", 1)); },
       FrameDefect::kReservedBits},
      {[](const Asked& asked) {
         Frame frame = WithBody(ResponseFrame(asked.call_id, 0, ""),
                                {.message = "m", .attachments = {"a"}, .landed = true});
         frame[16] = std::byte{2};
         return InZone(frame);
       },
       FrameDefect::kAttachments},
      {[&](const Asked& asked) {
         Frame zone = InZone(good(asked));
         zone[32] = std::byte{1};
         return zone;
       },
       FrameDefect::kReservedBits},
  };
  int number = 0;
  for (const auto& [make, defect] : cases) {
    SCOPED_TRACE(number++);
    auto call = StartExpecting(100'000);
    const Asked asked = AwaitRequestWithZone();
    LandBytes(asked.zone, make(asked));
    ExpectClose(defect, *call);
    Reopen();
  }
}

TEST_F(ClientPayload, ReceiveAReturnOfAZoneExpectZone) {
  logs_.Allow("the peer broke the protocol");
  Open();
  auto call = StartExpecting(100'000);
  peer_->Send(ZoneNoteFrame(FrameKind::kReturnZone, AwaitRequestWithZone().zone.immediate));
  ExpectClose(FrameDefect::kZone, *call);
  Reopen();
}

// ---- Calls that end early ----

TEST_F(ClientPayload, AResponseThatLandsAfterTheDeadlineIsDropped) {
  Open();
  auto call = StartExpecting(100'000, milliseconds(100));
  const Asked asked = AwaitRequestWithZone();
  EXPECT_EQ(call->Await().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(peer_->AwaitKind(FrameKind::kCancel), CancelFrame(asked.call_id));
  Land(asked.zone, ResponseFrame(asked.call_id, 0, kLong));
  ExpectStillWorks();
  EXPECT_EQ(call->response(), "");
}

TEST_F(ClientPayload, AZoneThatItsCallDidNotNeedIsForTheNext) {
  Open();
  auto call = StartExpecting(100'000);
  const Asked asked = AwaitRequestWithZone();
  peer_->Send(ResponseFrame(asked.call_id, 0, "short"));
  EXPECT_THAT(call->Await(), IsOk());
  // The server has one for the next call, too, so that does not carry one.
  auto next = StartExpecting(100'000);
  const Frame frame = peer_->AwaitKind(FrameKind::kRequest);
  EXPECT_EQ(frame[1], std::byte{0});
  Land(asked.zone, ResponseFrame(HeaderOf<FrameHeader>(frame).call_id, 0, kLong));
  EXPECT_THAT(next->Await(), IsOk());
  EXPECT_TRUE(next->response() == kLong);
}

TEST_F(ClientPayload, AZoneThatNobodyUsesIsRecalledAndItsReturnIsAccepted) {
  logs_.Allow("the peer broke the protocol");
  Open();
  auto call = StartExpecting(100'000);
  const Asked asked = AwaitRequestWithZone();
  peer_->Send(ResponseFrame(asked.call_id, 0, "short"));
  EXPECT_THAT(call->Await(), IsOk());
  Frame recall = peer_->AwaitKind(FrameKind::kRecallZone);
  recall[2] = recall[3] = std::byte{0};
  EXPECT_EQ(recall, ZoneNoteFrame(FrameKind::kRecallZone, asked.zone.immediate));
  peer_->Send(ZoneNoteFrame(FrameKind::kReturnZone, asked.zone.immediate));
  ExpectStillWorks();
  // It is none any more.
  SendImmediate(asked.zone.immediate);
  ExpectClose(FrameDefect::kZone);
}

TEST_F(ClientPayload, TheServerVanishesAtAnyStepExpectUnavailable) {
  Open();
  const Frame response = InZone(ResponseFrame(1, 0, kLong));
  const std::span<const std::byte> bytes(response);
  const auto start_long = [&] { return Start(std::string(4'000'000, 'q')); };
  using Step = std::function<std::unique_ptr<PendingCall>()>;
  const std::vector<Step> steps = {
      [&] {
        auto call = Start(kLong);
        AwaitWant();
        return call;
      },
      [&] {
        auto call = Start(kLong);
        peer_->Send(ZoneFrame(AwaitWant().frame.call_id, peer_->OfferZone(120'000)));
        return call;
      },
      [&] {
        auto call = Start(kLong);
        const ZoneGrant zone = peer_->OfferZone(120'000);
        peer_->Send(ZoneFrame(AwaitWant().frame.call_id, zone));
        AwaitLanded(zone);
        return call;
      },
      [&] {
        auto call = start_long();
        const ZoneGrant zone = peer_->OfferZone(4'100'000);
        peer_->Send(ZoneFrame(AwaitWant().frame.call_id, zone));
        peer_->StepUntil([&] { return peer_->ZoneBytes(zone)[0] != std::byte{0}; }, "first bytes");
        return call;
      },
      [&] {
        auto call = StartExpecting(100'000);
        AwaitRequestWithZone();
        return call;
      },
      [&] {
        auto call = StartExpecting(100'000);
        peer_->Write(AwaitRequestWithZone().zone, 0, bytes.first(50'000));
        peer_->AwaitSent();
        return call;
      },
      [&] {
        auto call = StartExpecting(100'000);
        peer_->Write(AwaitRequestWithZone().zone, 0, bytes);
        peer_->AwaitSent();
        return call;
      },
      [&] {
        auto call = Start("short");
        peer_->Send(WantZoneFrame(AwaitCall(), 100'000));
        return call;
      },
      [&] {
        auto call = Start("short");
        peer_->Send(WantZoneFrame(AwaitCall(), 4'000'000));  // Made in the background.
        return call;
      },
      [&] {
        auto call = Start("short");
        peer_->Send(WantZoneFrame(AwaitCall(), 100'000));
        AwaitZone();
        return call;
      },
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(i);
    auto call = steps[i]();
    peer_->Vanish();
    EXPECT_THAT(call->Await(), Is(absl::StatusCode::kUnavailable, "may have run"));
    Reopen();
  }
}

}  // namespace
}  // namespace verbena
