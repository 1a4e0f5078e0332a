// SPDX-License-Identifier: Apache-2.0
//
// Peers that write to memory after it was read, or after nobody waits any more: what the user holds
// never changes, and at most the peer's own connection ends. On the software device, or in a VM on
// its RDMA device (VERBENA_TEST_HOST).

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "verbena/tests/protocol/client_fixture.h"
#include "verbena/tests/protocol/server_fixture.h"
#include "verbena/tests/support/pattern.h"
#include "verbena/tests/support/vm_environment.h"
#include "verbena/transport/rdma/factory.h"

namespace verbena {
namespace {

using std::chrono::milliseconds;

bool InVm() { return !Environment("VERBENA_TEST_HOST").empty(); }
std::unique_ptr<Device> MakeTestDevice() {
  return InVm() ? Must(CreateRdmaDevice()) : Must(CreateSoftDevice());
}
Address TestAddress() { return InVm() ? FreshRdmaAddress() : FreshAddress(); }

constexpr size_t kBytes = 100'000;

std::string Pattern(uint64_t seed) {
  std::string text(kBytes, '\0');
  FillPattern(std::as_writable_bytes(std::span(text)), seed);
  return text;
}
bool HoldsPattern(const Buffer& buffer, uint64_t seed) {
  return buffer.size() == kBytes && PatternMismatch(buffer.span(), seed) == kBytes;
}

// Behind the prefix and the head of what Landing() makes; where windows end it, until they do.
void WriteUntilItEnds(RawPeer& peer, const ZoneGrant& zone, const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text)).first(60'000);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (!peer.broken() && std::chrono::steady_clock::now() < end) peer.Write(zone, 128, bytes);
}

// ---- Clients ----

class LateClient : public ServerProtocolTest {
 protected:
  LateClient() : ServerProtocolTest(&MakeTestDevice, TestAddress()) {}
  ~LateClient() override {
    kept_.clear();
    peer_.reset();
    if (server_ != nullptr) Shutdown();
  }

  // Keeps the attachments of each request, and what is in them as the handler sees it.
  void Start() {
    StartServer([this](ServerContext* context, const std::string& request, std::string* response) {
      std::lock_guard lock(mutex_);
      for (const Attachment& attachment : context->attachments()) {
        const std::span<const std::byte> bytes = attachment.buffer.span();
        kept_.push_back({attachment.buffer, std::vector<std::byte>(bytes.begin(), bytes.end())});
      }
      *response = request;
      return absl::OkStatus();
    });
  }
  ZoneGrant GetZone(uint32_t call_id, uint64_t bytes) {
    peer_->Send(WantZoneFrame(call_id, bytes));
    return HeaderOf<ZoneHeader>(peer_->AwaitKind(FrameKind::kZone)).zone;
  }
  static Frame Landing(uint32_t call_id, const std::string& attachment) {
    return InZone(WithBody(Request(call_id, ""),
                           {.message = "with", .attachments = {attachment}, .landed = true}));
  }
  void ExpectKeptUnchanged(size_t count) {
    std::lock_guard lock(mutex_);
    ASSERT_EQ(kept_.size(), count);
    for (const Kept& kept : kept_) {
      EXPECT_TRUE(std::ranges::equal(kept.buffer.span(), kept.seen));
    }
  }
  // Where a peer's rights end, a late write is the end of its connection; elsewhere it hits memory
  // that nobody looks at.
  void ExpectThatTheConnectionEnds() {
    if (!device_->capabilities().memory_windows) {
      peer_->AwaitSent();
      EXPECT_FALSE(peer_->broken());
      return;
    }
    peer_->StepUntil([this] { return peer_->broken(); }, "an error");
    EXPECT_TRUE(WaitUntil([this] {
      peer_->Step();
      return server_->statistics().connections == 0;
    }));
  }

  struct Kept {
    Buffer buffer;
    std::vector<std::byte> seen;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;
};

TEST_F(LateClient, WritesAgainAfterItsRequestWasReadExpectThatTheBufferDoesNotChange) {
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, kBytes + 1000);
  peer_->WriteWithImm(zone, 0, Landing(1, Pattern(1)), zone.immediate);
  peer_->AwaitKind(FrameKind::kResponse);
  peer_->Write(zone, 0, Landing(1, Pattern(2)));
  ExpectThatTheConnectionEnds();
  ExpectKeptUnchanged(1);
  {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(HoldsPattern(kept_[0].buffer, 1));
  }
  ExpectServesOthers();
}

TEST_F(LateClient, WritesOnAndOnWhileItsRequestIsReadExpectThatTheBufferDoesNotChange) {
  Start();
  for (uint32_t round = 1; round <= 20; ++round) {
    OpenPeer();
    const ZoneGrant zone = GetZone(1, kBytes + 1000);
    const std::string other = Pattern(100 + round);
    peer_->Write(zone, 0, Landing(1, Pattern(round)));
    peer_->WriteWithImm(zone, 0, {}, zone.immediate);
    // Some of these are in time. Whether the request is answered before the end is open.
    WriteUntilItEnds(*peer_, zone, other);
    ExpectThatTheConnectionEnds();
    std::lock_guard lock(mutex_);
    for (const Kept& kept : kept_) ASSERT_TRUE(std::ranges::equal(kept.buffer.span(), kept.seen));
  }
  ExpectServesOthers();
}

TEST_F(LateClient, WritesToAZoneThatItGaveBackExpectTheEnd) {
  if (!device_->capabilities().memory_windows) GTEST_SKIP() << "no memory windows";
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, kBytes + 1000);
  peer_->AwaitKind(FrameKind::kRecallZone);
  peer_->Send(ZoneNoteFrame(FrameKind::kReturnZone, zone.immediate));
  peer_->Send(Request(1, "so it has been seen"));
  peer_->AwaitKind(FrameKind::kResponse);
  peer_->Write(zone, 0, Landing(1, Pattern(2)));
  ExpectThatTheConnectionEnds();
  ExpectServesOthers();
}

TEST_F(LateClient, WritesBeyondItsZoneExpectTheEnd) {
  if (!device_->capabilities().memory_windows) GTEST_SKIP() << "no memory windows";
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, kBytes);
  const std::array<std::byte, 2> bytes{};
  peer_->Write(zone, zone.length - 2, bytes);
  peer_->AwaitSent();
  ASSERT_FALSE(peer_->broken());
  peer_->Write(zone, zone.length - 1, bytes);
  ExpectThatTheConnectionEnds();
  ExpectServesOthers();
}

TEST_F(LateClient, WritesToTheZoneOfAnotherConnectionExpectTheEnd) {
  Start();
  OpenPeer();
  const ZoneGrant zone = GetZone(1, kBytes + 1000);
  peer_->Write(zone, 0, Landing(1, Pattern(1)));
  peer_->AwaitSent();
  RawPeer thief(*device_);
  thief.ConnectAndOpen(address_);
  thief.Write(zone, 0, Landing(1, Pattern(2)));
  thief.StepUntil([&] { return thief.broken(); }, "an error");
  peer_->WriteWithImm(zone, 0, {}, zone.immediate);
  peer_->AwaitKind(FrameKind::kResponse);
  std::lock_guard lock(mutex_);
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_TRUE(HoldsPattern(kept_[0].buffer, 1));
}

// ---- Servers ----

class LateServer : public ClientProtocolTest {
 protected:
  LateServer() : ClientProtocolTest(&MakeTestDevice, TestAddress()) {}

  void Open() {
    MakeServer();
    MakeChannel();
    OpenAgain();
  }
  void OpenAgain() {
    PendingCall call(*channel_, "open");
    peer_->AcceptAndOpen();
    Answer(AwaitCall());
    ASSERT_THAT(call.Await(), IsOk());
  }
  std::unique_ptr<PendingCall> Start(milliseconds timeout = milliseconds::max(),
                                     std::span<std::byte> memory = {}) {
    return std::make_unique<PendingCall>(*channel_, "short", timeout, [&](ClientContext& context) {
      context.set_response_bytes_max(kBytes);
      context.set_response_memory(memory);
    });
  }
  uint32_t AwaitCall() {
    return HeaderOf<FrameHeader>(peer_->AwaitKind(FrameKind::kRequest)).call_id;
  }
  struct Asked {
    uint32_t call_id;
    ZoneGrant zone;
  };
  // The next request, and a zone that takes its response: in the request, or granted ahead.
  Asked AwaitRequestWithZone() {
    const Frame frame = peer_->AwaitKind(FrameKind::kRequest);
    Asked asked{HeaderOf<FrameHeader>(frame).call_id, {}};
    if (frame[1] == std::byte{1}) {
      std::memcpy(&asked.zone, frame.data() + 24, 24);
    } else {
      asked.zone = HeaderOf<ZoneHeader>(peer_->AwaitKind(FrameKind::kZone)).zone;
    }
    return asked;
  }
  static Frame Landing(uint32_t call_id, const std::string& attachment) {
    return InZone(WithBody(ResponseFrame(call_id, 0, ""),
                           {.message = "with", .attachments = {attachment}, .landed = true}));
  }
  void Answer(uint32_t call_id) { peer_->Send(ResponseFrame(call_id, 0, "yes")); }
  void ExpectStillWorks() {
    PendingCall call(*channel_, "still there?");
    Answer(AwaitCall());
    EXPECT_THAT(call.Await(), IsOk());
  }
  // A call that got Pattern(seed), and holds on to it.
  std::unique_ptr<PendingCall> Get(uint64_t seed, ZoneGrant* zone) {
    auto call = Start();
    const Asked asked = AwaitRequestWithZone();
    *zone = asked.zone;
    peer_->WriteWithImm(asked.zone, 0, Landing(asked.call_id, Pattern(seed)), asked.zone.immediate);
    peer_->AwaitSent();
    EXPECT_THAT(call->Await(), IsOk());
    return call;
  }
  static const Buffer& BufferOf(PendingCall& call) {
    return call.context().response_attachments()[0].buffer;
  }
  // As of a client's.
  void ExpectThatTheConnectionEnds() {
    if (!device_->capabilities().memory_windows) {
      peer_->AwaitSent();
      EXPECT_FALSE(peer_->broken());
      return;
    }
    peer_->StepUntil([this] { return peer_->broken(); }, "an error");
    EXPECT_TRUE(WaitUntil([this] {
      peer_->Step();
      return channel_->statistics().disconnects == channel_->statistics().connects;
    }));
    peer_->Renew();
    OpenAgain();
  }
};

TEST_F(LateServer, WritesAgainAfterItsResponseLandedExpectThatTheBufferDoesNotChange) {
  Open();
  ZoneGrant zone;
  auto call = Get(1, &zone);
  peer_->Write(zone, 0, Landing(1, Pattern(2)));
  ExpectThatTheConnectionEnds();
  EXPECT_TRUE(HoldsPattern(BufferOf(*call), 1));
  ExpectStillWorks();
}

TEST_F(LateServer, WritesOnAndOnWhileItsResponseIsReadExpectThatTheBufferDoesNotChange) {
  Open();
  for (uint32_t round = 1; round <= 20; ++round) {
    auto call = Start();
    const Asked asked = AwaitRequestWithZone();
    const std::string other = Pattern(100 + round);
    peer_->Write(asked.zone, 0, Landing(asked.call_id, Pattern(round)));
    peer_->WriteWithImm(asked.zone, 0, {}, asked.zone.immediate);
    WriteUntilItEnds(*peer_, asked.zone, other);
    // The write that breaks the connection may be seen before what landed is read.
    const absl::Status status = call->Await();
    std::vector<std::byte> seen;
    if (status.ok()) {
      const Buffer& buffer = BufferOf(*call);
      seen.assign(buffer.data(), buffer.data() + buffer.size());
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    }
    ExpectThatTheConnectionEnds();
    if (status.ok()) {
      EXPECT_TRUE(std::ranges::equal(BufferOf(*call).span(), seen));
    }
  }
}

TEST_F(LateServer, WritesAfterTheDeadlineExpectThatNothingOfTheCallersChangesAndThatItGoesOn) {
  Open();
  ZoneGrant earlier;
  auto holds = Get(1, &earlier);
  std::vector<std::byte> memory(kBytes, std::byte{0xee});
  auto call = Start(milliseconds(200), memory);
  const Asked asked = AwaitRequestWithZone();
  EXPECT_EQ(call->Await().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(peer_->AwaitKind(FrameKind::kCancel), CancelFrame(asked.call_id));
  peer_->Write(asked.zone, 0, Landing(asked.call_id, Pattern(2)));
  peer_->AwaitSent();
  EXPECT_FALSE(peer_->broken()) << "it may still write";
  ExpectStillWorks();
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{0xee}; }));
  EXPECT_TRUE(call->context().response_attachments().empty());
  EXPECT_TRUE(HoldsPattern(BufferOf(*holds), 1));
  // The zone is good for the next, and what was written there before is not seen.
  auto next = Start();
  const uint32_t id = AwaitCall();
  peer_->WriteWithImm(asked.zone, 0, Landing(id, Pattern(3)), asked.zone.immediate);
  peer_->AwaitSent();
  EXPECT_THAT(next->Await(), IsOk());
  EXPECT_TRUE(HoldsPattern(BufferOf(*next), 3));
  // And now it may not.
  peer_->Write(asked.zone, 0, Landing(id, Pattern(4)));
  ExpectThatTheConnectionEnds();
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{0xee}; }));
  EXPECT_TRUE(HoldsPattern(BufferOf(*holds), 1));
  EXPECT_TRUE(HoldsPattern(BufferOf(*next), 3));
}

TEST_F(LateServer, AnnouncesAfterTheDeadlineExpectThatNothingOfTheCallersChangesAndThatItGoesOn) {
  Open();
  std::vector<std::byte> memory(kBytes, std::byte{0xee});
  auto call = Start(milliseconds(200), memory);
  const Asked asked = AwaitRequestWithZone();
  peer_->Write(asked.zone, 0, Landing(asked.call_id, Pattern(2)));
  EXPECT_EQ(call->Await().code(), absl::StatusCode::kDeadlineExceeded);
  peer_->WriteWithImm(asked.zone, 0, {}, asked.zone.immediate);
  peer_->AwaitSent();
  ExpectStillWorks();
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{0xee}; }));
  EXPECT_TRUE(call->context().response_attachments().empty());
  ZoneGrant zone;
  auto next = Get(3, &zone);
  EXPECT_TRUE(HoldsPattern(BufferOf(*next), 3));
}

TEST_F(LateServer, WritesToAZoneOfAnEarlierCallExpectThatTheNextCallDoesNotSeeIt) {
  if (!device_->capabilities().memory_windows) GTEST_SKIP() << "no memory windows";
  Open();
  ZoneGrant zone;
  Get(1, &zone).reset();
  // The same memory, most likely, and another key.
  auto call = Start();
  const Asked asked = AwaitRequestWithZone();
  EXPECT_FALSE(asked.zone.remote_key == zone.remote_key && asked.zone.address == zone.address);
  peer_->Write(zone, 0, Landing(asked.call_id, Pattern(2)));
  peer_->AwaitSent();
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kUnavailable, "may have run"));
  ExpectThatTheConnectionEnds();
}

}  // namespace
}  // namespace verbena
