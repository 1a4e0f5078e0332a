// SPDX-License-Identifier: Apache-2.0
//
// "Receive ... Expect ...": whatever a peer sends or scribbles, it breaks at most its own
// connection. After each attack a correct client is served by the same listener.

#include "verbena/tests/unit/transport/soft/hostile_peer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "verbena/tests/support/must.h"
#include "verbena/tests/support/wait.h"
#include "verbena/tests/unit/transport/soft/end.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/device_impl.h"

namespace verbena::soft {
namespace {

constexpr int kClosesWithinMs = 5000;

class HostilePeerTest : public testing::Test {
 protected:
  HostilePeerTest() : name_(FreshName()) { victim_.Listen(name_); }

  // The peer and the victim's pair, connected.
  std::unique_ptr<HostilePeer> ConnectHostile() {
    auto peer = StartHostile();
    peer->Ready();
    EXPECT_EQ(victim_.AwaitEvent().type, ConnectionEvent::Type::kEstablished);
    return peer;
  }

  // The same without the last message of the handshake.
  std::unique_ptr<HostilePeer> StartHostile() {
    auto peer = std::make_unique<HostilePeer>(name_);
    peer->Request();
    ConnectionEvent event = victim_.AwaitEvent();
    Must(victim_.manager->Accept(std::move(event.request), *victim_.pair, {}));
    peer->TakeReply();
    return peer;
  }

  void ExpectEnd() {
    const ConnectionEvent event = victim_.AwaitEvent();
    EXPECT_EQ(event.type, ConnectionEvent::Type::kDisconnected);
    EXPECT_FALSE(event.status.ok());
    EXPECT_EQ(victim_.pair->state(), QueuePairState::kError);
  }

  void ExpectReceiveError(CompletionStatus status) {
    EXPECT_EQ(victim_.AwaitCompletion().status, status);
    EXPECT_EQ(victim_.pair->state(), QueuePairState::kError);
  }

  void ExpectSendError(CompletionStatus status) {
    EXPECT_EQ(victim_.AwaitCompletion().status, status);
    EXPECT_EQ(victim_.pair->state(), QueuePairState::kError);
  }

  void RenewPair() {
    victim_.pair.reset();
    victim_.pair = Must(victim_.domain->CreateQueuePair({.send_queue = victim_.queue.get(),
                                                         .recv_queue = victim_.queue.get(),
                                                         .send_depth = 16,
                                                         .recv_depth = 16}));
  }

  // A correct client connects and is heard; nothing of the hostile one is left.
  void ExpectUnharmed(std::chrono::milliseconds timeout = kHangBound) {
    RenewPair();
    End client({.depth = 16});
    victim_.PostRecv(500, 0, 4096);
    ConnectOptions options;
    options.timeout = timeout;
    Must(client.manager->Connect(*client.pair, {"shm", name_, 0}, options));
    victim_.Accept();
    EXPECT_EQ(client.AwaitEvent().type, ConnectionEvent::Type::kEstablished);
    client.Send(1, 0, 300);
    EXPECT_EQ(client.AwaitCompletion().status, CompletionStatus::kSuccess);
    const WorkCompletion completion = victim_.AwaitCompletion();
    EXPECT_EQ(completion.wr_id, 500u);
    EXPECT_EQ(completion.status, CompletionStatus::kSuccess);
    client.pair.reset();
    EXPECT_EQ(victim_.AwaitEvent().type, ConnectionEvent::Type::kDisconnected);
    auto& control = static_cast<SoftDevice&>(*victim_.device).control();
    EXPECT_TRUE(WaitUntil([&] { return control.LinkCount() == 1; }));
  }

  // The same, when the peer still believes to be connected.
  void ExpectUnharmedAfter(std::unique_ptr<HostilePeer> peer) {
    peer.reset();
    EXPECT_EQ(victim_.AwaitEvent().type, ConnectionEvent::Type::kDisconnected);
    ExpectUnharmed();
  }

  End victim_;
  const std::string name_;
};

// On the socket --------------------------------------------------------------------------------

TEST_F(HostilePeerTest, GarbageInsteadOfARequestIsClosed) {
  std::mt19937 random(1);
  for (size_t bytes : {1, 95, 96, 97, 4096}) {
    HostilePeer peer(name_);
    std::vector<std::byte> garbage(bytes);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    peer.SendBytes(garbage);
    EXPECT_TRUE(peer.AwaitClose(kClosesWithinMs)) << bytes;
  }
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, SilenceIsClosedInTime) {
  std::vector<std::unique_ptr<HostilePeer>> peers;
  for (int i = 0; i < 20; ++i) peers.push_back(std::make_unique<HostilePeer>(name_));
  for (auto& peer : peers) EXPECT_TRUE(peer->AwaitClose(kClosesWithinMs));
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, SilenceAfterTheReplyIsClosedInTime) {
  auto peer = StartHostile();
  EXPECT_TRUE(peer->AwaitClose(kClosesWithinMs));
  ExpectEnd();
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, MoreSilentSocketsThanArePendingHoldUpNobodyForLong) {
  std::vector<UniqueFd> sockets;
  for (uint32_t i = 0; i < kPendingRequestsMax + 100; ++i) {
    sockets.push_back(Must(CreateSocket()));
    ASSERT_EQ(ConnectTo(sockets.back().get(), name_), 0);
  }
  // The crowd is in front of it: closed after kHandshakeTimeout, twice.
  ExpectUnharmed(std::chrono::seconds(15));
}

TEST_F(HostilePeerTest, OtherVersionIsToldAndClosed) {
  HostilePeer peer(name_);
  ControlMessage request = HostilePeer::Message(MessageType::kRequest);
  request.version = kWireVersion + 1;
  peer.Send(request);
  EXPECT_TRUE(peer.AwaitClose(kClosesWithinMs));
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, MessagesOutOfTurnAreClosed) {
  for (auto type : {MessageType::kReply, MessageType::kReject, MessageType::kReady,
                    MessageType::kRegion, MessageType::kRegionGone, MessageType::kFault}) {
    HostilePeer peer(name_);
    const std::vector<int> descriptors(DescriptorsOf(type), peer.event_fd());
    peer.Send(HostilePeer::Message(type), descriptors);
    EXPECT_TRUE(peer.AwaitClose(kClosesWithinMs)) << static_cast<int>(type);
  }
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, SecondRequestEndsTheFirst) {
  HostilePeer peer(name_);
  peer.Request();
  ConnectionEvent event = victim_.AwaitEvent();
  peer.Request();
  EXPECT_TRUE(peer.AwaitClose(kClosesWithinMs));
  Must(victim_.manager->Accept(std::move(event.request), *victim_.pair, {}));
  ExpectEnd();
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, MessageWithTooFewDescriptorsIsClosed) {
  auto peer = StartHostile();
  std::vector<std::byte> bytes(sizeof(ControlMessage));
  const ControlMessage ready = HostilePeer::Message(MessageType::kReady);
  std::memcpy(bytes.data(), &ready, sizeof ready);
  peer->SendBytes(bytes);
  EXPECT_TRUE(peer->AwaitClose(kClosesWithinMs));
  ExpectEnd();
  ExpectUnharmed();
}

// Descriptors ----------------------------------------------------------------------------------

TEST_F(HostilePeerTest, SegmentThatCanShrinkIsRefused) {
  auto peer = StartHostile();
  const int fd = memfd_create("unsealed", 0);
  ASSERT_EQ(ftruncate(fd, SegmentLayout(HostilePeer::kSlots).bytes), 0);
  peer->Send(HostilePeer::Message(MessageType::kReady), {fd, peer->event_fd(), peer->keys_fd()});
  EXPECT_TRUE(peer->AwaitClose(kClosesWithinMs));
  close(fd);
  ExpectEnd();
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, SegmentShorterThanItSaysIsRefused) {
  auto peer = StartHostile();
  const SealedMemory shorter = Must(CreateSealedMemory(
      "short", SegmentLayout(HostilePeer::kSlots).bytes - kPageBytes, /*peers_may_write=*/true));
  peer->Send(HostilePeer::Message(MessageType::kReady),
             {shorter.fd.get(), peer->event_fd(), peer->keys_fd()});
  EXPECT_TRUE(peer->AwaitClose(kClosesWithinMs));
  ExpectEnd();
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, ImpossibleNumberOfSlotsIsRefused) {
  for (uint32_t slots : {0u, 3u, kQueueDepthMax * 2, ~0u}) {
    auto peer = StartHostile();
    ControlMessage ready = HostilePeer::Message(MessageType::kReady);
    ready.slots = slots;
    peer->Send(ready, {peer->segment_fd(), peer->event_fd(), peer->keys_fd()});
    EXPECT_TRUE(peer->AwaitClose(kClosesWithinMs)) << slots;
    ExpectEnd();
    ExpectUnharmed();
    RenewPair();
  }
}

TEST_F(HostilePeerTest, PipeInsteadOfAnEventIsRefused) {
  auto peer = StartHostile();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  peer->Send(HostilePeer::Message(MessageType::kReady),
             {peer->segment_fd(), ends[1], peer->keys_fd()});
  EXPECT_TRUE(peer->AwaitClose(kClosesWithinMs));
  close(ends[0]);
  close(ends[1]);
  ExpectEnd();
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, RegionThatCanShrinkEndsTheConnection) {
  auto peer = ConnectHostile();
  const int fd = memfd_create("unsealed", 0);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  ControlMessage region = HostilePeer::Message(MessageType::kRegion);
  region.region = 1 << 8;
  region.region_bytes = 4096;
  peer->Send(region, {fd});
  close(fd);
  ExpectEnd();
  ExpectUnharmed();
}

TEST_F(HostilePeerTest, MoreMemoryThanAPeerMayAnnounceEndsTheConnection) {
  auto peer = ConnectHostile();
  ControlMessage region = HostilePeer::Message(MessageType::kRegion);
  region.region = 1 << 8;
  region.region_bytes = ~uint64_t{0};
  peer->Send(region, {peer->segment_fd()});
  ExpectEnd();
  ExpectUnharmed();
}

// Completion entries -----------------------------------------------------------------------------

class HostileEntryTest : public HostilePeerTest {
 protected:
  HostileEntryTest() {
    victim_.PostRecv(1, 0, 64);
    victim_.PostRecv(2, 64, 64);
    peer_ = ConnectHostile();
  }
  void ExpectRefused(CompletionStatus status) {
    ExpectReceiveError(status);
    EXPECT_EQ(victim_.AwaitCompletion().status, CompletionStatus::kFlushed);
    // Not a byte of what follows the receive was touched.
    for (size_t i = 64; i < 4096; ++i) EXPECT_EQ(victim_.region->bytes()[i], std::byte{0});
    ExpectUnharmedAfter(std::move(peer_));
  }
  static constexpr uint8_t kSendOpcode = static_cast<uint8_t>(WireOpcode::kSend);
  std::unique_ptr<HostilePeer> peer_;
};

TEST_F(HostileEntryTest, PayloadLongerThanTheReceiveIsALengthError) {
  peer_->Publish(0, 65, 0, kSendOpcode, kEntryInside, 0);
  ExpectRefused(CompletionStatus::kLocalLengthError);
}

TEST_F(HostileEntryTest, HugeLengthIsALengthError) {
  peer_->Publish(0, ~0u, 0, kSendOpcode, 0, 0);
  ExpectRefused(CompletionStatus::kLocalLengthError);
}

TEST_F(HostileEntryTest, UnknownOpcodeIsRefused) {
  peer_->Publish(0, 8, 0, 99, kEntryInside, 0);
  ExpectRefused(CompletionStatus::kLocalQueuePairOperationError);
}

TEST_F(HostileEntryTest, UnknownStatusIsRefused) {
  peer_->Publish(0, 8, 0, kSendOpcode, kEntryInside, 77);
  ExpectRefused(CompletionStatus::kLocalQueuePairOperationError);
}

TEST_F(HostileEntryTest, InvalidationOfAKeyThatIsNotItsOwnIsRefused) {
  const uint32_t key = victim_.region->remote_key().value;
  peer_->Publish(0, 8, key, static_cast<uint8_t>(WireOpcode::kSendWithInvalidate), kEntryInside, 0);
  ExpectRefused(CompletionStatus::kLocalQueuePairOperationError);
}

TEST_F(HostileEntryTest, EntryWithoutAReceiveEndsThePairOnly) {
  peer_->Publish(0, 8, 0, kSendOpcode, kEntryInside, 0);
  peer_->Publish(1, 8, 0, kSendOpcode, kEntryInside, 0);
  peer_->Publish(2, 8, 0, kSendOpcode, kEntryInside, 0);
  EXPECT_EQ(victim_.AwaitCompletion().status, CompletionStatus::kSuccess);
  EXPECT_EQ(victim_.AwaitCompletion().status, CompletionStatus::kSuccess);
  WorkCompletion none;
  EXPECT_EQ(victim_.queue->Poll({&none, 1}), 0u);
  EXPECT_EQ(victim_.pair->state(), QueuePairState::kError);
  AsyncEvent event;
  ASSERT_TRUE(victim_.device->PollAsyncEvent(&event));
  EXPECT_EQ(event.type, AsyncEvent::Type::kQueuePairFatal);
  ExpectUnharmedAfter(std::move(peer_));
}

// Random bytes over everything the peer can write, while the victim sends, receives and polls.
TEST_F(HostilePeerTest, ScribblingOverTheSegmentCrashesNobody) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    auto peer = ConnectHostile();
    peer->own().control->receive_tail.store(random());
    const size_t bytes = peer->victim_size();
    for (int step = 0; step < 300; ++step) {
      for (int i = 0; i < 20; ++i) {
        // Mostly the control page and the rings; the staging slots are the rest.
        const size_t at = random() % (step % 8 == 0 ? bytes : 3 * kPageBytes);
        peer->victim_bytes()[at] = static_cast<std::byte>(random());
        // And the receives that it shows us.
        peer->own().receives[random() & peer->own().mask].sge_count = random();
        auto* own = reinterpret_cast<std::byte*>(peer->own().control);
        own[random() % (3 * kPageBytes)] = static_cast<std::byte>(random());
      }
      const ScatterGatherEntry sge{victim_.region->address(), 200, victim_.region->local_key()};
      const RecvWorkRequest receive{1, {&sge, 1}};
      (void)victim_.pair->PostRecv({&receive, 1});
      SendWorkRequest send;
      send.sg_list = {&sge, 1};
      (void)victim_.pair->PostSend({&send, 1});
      WorkCompletion completions[8];
      victim_.queue->Poll(completions);
    }
    peer.reset();
    EXPECT_EQ(victim_.AwaitEvent().type, ConnectionEvent::Type::kDisconnected);
    AsyncEvent event;
    while (victim_.device->PollAsyncEvent(&event)) {
    }
    RenewPair();
  }
  ExpectUnharmed();
}

// What the victim sends --------------------------------------------------------------------------

TEST_F(HostilePeerTest, ReceiveThatPointsOutsideItsRegionFailsTheSend) {
  auto peer = ConnectHostile();
  const SealedMemory memory = Must(CreateSealedMemory("region", 4096, /*peers_may_write=*/true));
  ControlMessage region = HostilePeer::Message(MessageType::kRegion);
  region.flags = kMessageWritable;
  region.region = 1 << 8;
  region.region_bytes = 4096;
  peer->Send(region, {memory.fd.get()});
  peer->own().receives[0].length = 1000;
  peer->own().receives[0].flags = kReceiveDirect;
  peer->own().receives[0].sge_count = 1;
  peer->own().receives[0].sge[0] = {1 << 8, 1000, ~uint64_t{0} - 500};
  peer->own().control->receive_tail.store(1);
  victim_.Send(1, 0, 1000);
  ExpectSendError(CompletionStatus::kRemoteOperationError);
  ExpectUnharmedAfter(std::move(peer));
}

TEST_F(HostilePeerTest, KeyTableThatPromisesMoreThanTheRegionFailsTheWrite) {
  auto peer = ConnectHostile();
  const SealedMemory memory = Must(CreateSealedMemory("region", 4096, /*peers_may_write=*/true));
  ControlMessage region = HostilePeer::Message(MessageType::kRegion);
  region.flags = kMessageWritable;
  region.region = 1 << 8;
  region.region_bytes = 4096;
  peer->Send(region, {memory.fd.get()});
  peer->keys().OpenRemote(1 << 8, {.access = kAccessRemoteWrite,
                                   .region = 1 << 8,
                                   .queue_pair = 0,
                                   .address = 0,
                                   .length = ~uint64_t{0},
                                   .offset = 4000});
  const ScatterGatherEntry sge{victim_.region->address(), 1000, victim_.region->local_key()};
  SendWorkRequest write;
  write.opcode = Opcode::kWrite;
  write.flags = kSendSignaled;
  write.sg_list = {&sge, 1};
  write.remote = {0, RemoteKey{1 << 8}};
  Must(victim_.pair->PostSend({&write, 1}));
  ExpectSendError(CompletionStatus::kRemoteOperationError);
  ExpectUnharmedAfter(std::move(peer));
}

TEST_F(HostilePeerTest, RegionThatNeverComesFailsTheSendAfterAWhile) {
  auto peer = ConnectHostile();
  peer->own().receives[0].length = 1000;
  peer->own().receives[0].flags = kReceiveDirect;
  peer->own().receives[0].sge_count = 1;
  peer->own().receives[0].sge[0] = {5 << 8, 1000, 0};
  peer->own().control->receive_tail.store(1);
  const auto start = std::chrono::steady_clock::now();
  victim_.Send(1, 0, 1000);
  ExpectSendError(CompletionStatus::kRemoteAccessError);
  EXPECT_GE(std::chrono::steady_clock::now() - start, kRegionWait);
  ExpectUnharmedAfter(std::move(peer));
}

}  // namespace
}  // namespace verbena::soft
