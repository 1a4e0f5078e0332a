// SPDX-License-Identifier: Apache-2.0
//
// A peer whose host or network is gone, which nobody tells: the endpoint finds out by probes that
// the peer's NIC has to answer. In virtual time; the peer's thread never runs while it passes.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "verbena/tests/protocol/endpoint_fixture.h"
#include "verbena/tests/support/faulty_device.h"
#include "verbena/tests/support/manual_clock.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/status_matchers.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDetection{600};
constexpr milliseconds kLook = kDetection / PeerWatch::kLooks;
const EndpointOptions kOptions = {.ring_depth = 16, .detection_time = kDetection};

class VanishedPeer : public EndpointTest {
 protected:
  ~VanishedPeer() override {
    under_test_.reset();  // It uses the clock.
  }
  std::unique_ptr<Device> MakeDevice() override {
    auto device = std::make_unique<FaultyDevice>(Must(CreateSoftDevice()));
    faults_ = device.get();
    change_(device->mutable_capabilities());
    return device;
  }
  const Clock* clock() override { return &clock_; }

  void Pass(milliseconds time) {
    for (milliseconds passed{0}; passed < time; passed += milliseconds(5)) {
      clock_.Advance(std::min<milliseconds>(milliseconds(5), time - passed));
      for (int i = 0; i < 3; ++i) under_test_->Step();
    }
  }
  // How long it took until the endpoint was closed; `bound` if it was not.
  milliseconds UntilClosed(milliseconds bound) {
    milliseconds passed{0};
    for (; passed < bound && !handler().closed; passed += milliseconds(5)) Pass(milliseconds(5));
    return passed;
  }
  uint64_t Probes() { return faults_->posted(Opcode::kWrite) + faults_->posted(Opcode::kRead); }
  // Until the endpoint has asked the peer.
  void AwaitProbe() {
    const uint64_t before = Probes();
    for (int i = 0; i < 1000 && Probes() == before; ++i) Pass(milliseconds(5));
    ASSERT_GT(Probes(), before);
  }

  ManualClock clock_;
  FaultyDevice* faults_ = nullptr;
  std::function<void(Capabilities&)> change_ = [](Capabilities&) {};
};

TEST_F(VanishedPeer, IsTakenForGoneWithinTheDetectionTimeWhenSomebodyWaits) {
  Open(kOptions);
  Pass(milliseconds(1234));
  faults_->set_network_lost(true);
  EXPECT_LE(UntilClosed(2 * kDetection), kDetection);
  EXPECT_THAT(*handler().closed,
              Is(absl::StatusCode::kUnavailable, "the peer did not answer for 3"));
  EXPECT_THAT(*handler().closed,
              Is(absl::StatusCode::kUnavailable, "EndpointOptions::detection_time is 600 ms"));
  EXPECT_TRUE(endpoint().peer_lost());
}

TEST_F(VanishedPeer, IsTakenForGoneAlthoughOurSendsWereAnsweredUntilThen) {
  Open(kOptions);
  EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, "x")));
  Pass(kLook);
  faults_->set_network_lost(true);
  EXPECT_TRUE(under_test_->TrySend(RequestFrame(2, 2, "x")));
  EXPECT_LE(UntilClosed(2 * kDetection), kDetection);
}

TEST_F(VanishedPeer, IsNoticedByAnIdleSideWithinTwiceTheDetectionTime) {
  Open(kOptions);
  handler().awaits = false;
  Pass(milliseconds(1234));
  faults_->set_network_lost(true);
  EXPECT_LE(UntilClosed(3 * kDetection), 2 * kDetection);
}

TEST_F(VanishedPeer, IsNoticedSoonerWhenSomethingWaitsForRoomToSend) {
  Open(kOptions, {.ring_depth = 16, .posts_receives_again = false});
  handler().awaits = false;
  while (under_test_->TrySend(RequestFrame(1, 2, "x"))) {
  }
  endpoint().WantWritable();
  Pass(milliseconds(750));
  faults_->set_network_lost(true);
  EXPECT_LE(UntilClosed(2 * kDetection), kDetection);
}

TEST_F(VanishedPeer, IsNotOneWhoseThreadIsBusyForHours) {
  Open(kOptions);
  Pass(std::chrono::minutes(10));
  EXPECT_FALSE(handler().closed);
  // One per two looks: it asks, and in the next look it has the answer.
  EXPECT_NEAR(static_cast<double>(Probes()), 600'000.0 / 200, 10);
}

TEST_F(VanishedPeer, IsLookedForSeldomWhenNobodyWaits) {
  Open(kOptions);
  handler().awaits = false;
  Pass(std::chrono::minutes(10));
  EXPECT_FALSE(handler().closed);
  EXPECT_NEAR(static_cast<double>(Probes()), 600'000.0 / 700, 10);
}

TEST_F(VanishedPeer, IsNotLookedForWhileFramesCome) {
  Open(kOptions);
  for (int i = 0; i < 100; ++i) {
    peer().Send(CancelFrame(1));
    AwaitFrames(static_cast<size_t>(i) + 1);
    Pass(kLook);
  }
  EXPECT_EQ(Probes(), 0u);
}

TEST_F(VanishedPeer, IsNeverLookedForWithADetectionTimeOfZero) {
  Open({.ring_depth = 16, .detection_time = milliseconds(0)});
  faults_->set_network_lost(true);
  EXPECT_EQ(UntilClosed(std::chrono::minutes(10)), std::chrono::minutes(10));
  EXPECT_EQ(Probes(), 0u);
}

TEST_F(VanishedPeer, ProbesConsumeNoCreditNoReceiveAndNoPlaceOfAFrame) {
  Open(kOptions, {.ring_depth = 16, .posts_receives_again = false});
  Pass(std::chrono::minutes(1));
  EXPECT_GT(Probes(), 100u);
  EXPECT_EQ(peer().FramesWaiting(), 0u);
  int sent = 0;
  while (under_test_->TrySend(RequestFrame(1, 2, "x"))) ++sent;
  EXPECT_EQ(sent, 12);
  for (int i = 0; i < sent; ++i) peer().AwaitFrame();
}

TEST_F(VanishedPeer, AProbeAndTheLastWorkRequestFindAPlaceWhenTheSendQueueIsFull) {
  Open(kOptions, {.ring_depth = 64});
  faults_->set_sends_held(true);
  while (under_test_->TrySend(RequestFrame(1, 2, "x"))) {
  }
  AwaitProbe();
  EXPECT_FALSE(handler().closed);
  endpoint().Fail(absl::DataLossError("because"));
  EXPECT_EQ(faults_->refused_posts(), 0u);
}

TEST_F(VanishedPeer, AnAnsweredProbeTellsThatTheSendsBeforeItAreThrough) {
  Open(kOptions, {.ring_depth = 64});
  // Every fourth is signalled, so the last two tell nothing by themselves.
  for (int i = 0; i < 14; ++i) EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, "x")));
  AwaitProbe();
  Pass(kLook);
  int sent = 0;
  while (under_test_->TrySend(RequestFrame(1, 2, "x"))) ++sent;
  EXPECT_EQ(sent, 16);
  EXPECT_FALSE(handler().closed);
}

// ---- The thread that looks was away ----

TEST_F(VanishedPeer, IsNotOneThatAnsweredWhileOurThreadWasStuck) {
  Open(kOptions);
  faults_->set_sends_held(true);
  AwaitProbe();
  faults_->set_sends_held(false);
  clock_.Advance(3 * kDetection);
  Pass(kDetection);
  EXPECT_FALSE(handler().closed);
}

// A machine that was stopped with its NIC: the answer is still to come when it goes on.
TEST_F(VanishedPeer, IsNotOneThatHadNoTimeToAnswerBecauseOurMachineStoodStill) {
  Open(kOptions);
  faults_->set_sends_held(true);
  AwaitProbe();
  clock_.Advance(100 * kDetection);
  Pass(kLook);
  EXPECT_FALSE(handler().closed);
  faults_->set_sends_held(false);
  Pass(kDetection);
  EXPECT_FALSE(handler().closed);
}

// Many connections on one poller.
class ManyPeers : public testing::Test {
 protected:
  struct Side {
    RecordingHandler handler;
    std::unique_ptr<RawPeer> peer;
    std::unique_ptr<Endpoint> endpoint;
  };

  ~ManyPeers() override {
    for (const auto& side : sides_) poller_->Bury(std::move(side->endpoint));
    poller_->Drain();
  }
  void Open(uint32_t count, const EndpointOptions& options) {
    poller_ = Must(Poller::Create(device_, count * Endpoint::CompletionsMax(options), clock_));
    for (uint32_t i = 0; i < count; ++i) {
      sides_.push_back(std::make_unique<Side>());
      OpenOne(options, *sides_.back());
    }
  }
  void OpenOne(const EndpointOptions& options, Side& side) {
    side.peer = std::make_unique<RawPeer>(*peer_device_, RawPeerOptions{.slot_bytes = 512});
    side.peer->set_pump([this] { Step(); });
    const Address address = FreshAddress();
    side.peer->Listen(address);
    side.endpoint =
        Must(poller_->CreateEndpoint(options, &side.handler, [&side](ConnectionEvent& event) {
          if (event.type != ConnectionEvent::Type::kEstablished) return;
          side.endpoint->Open(Must(DecodeHello(event.private_data.span())),
                              Endpoint::Side::kConnecting);
        }));
    Must(poller_->connection_manager().Connect(side.endpoint->queue_pair(), address,
                                               side.endpoint->MakeConnectOptions(1)));
    side.peer->AcceptAndOpen();
    side.peer->StepUntil([&] { return side.endpoint->is_open(); }, "an endpoint to open");
    side.peer->set_pump(nullptr);
  }
  void Step() {
    poller_->Woken();
    poller_->RunOnce();
  }

  LogGuard logs_;
  ManualClock clock_;
  FaultyDevice device_{Must(CreateSoftDevice())};
  std::unique_ptr<Device> peer_device_ = Must(CreateSoftDevice());
  std::unique_ptr<Poller> poller_;
  std::vector<std::unique_ptr<Side>> sides_;
};

TEST_F(ManyPeers, AreLookedAtSomeAtATimeAndEachWithinTheDetectionTime) {
  constexpr size_t kPeers = 130;
  Open(kPeers, {.ring_depth = 16, .slot_bytes = 512, .detection_time = kDetection});
  device_.set_network_lost(true);
  for (int ms = 0; ms < kDetection.count(); ++ms) {
    const uint64_t before = device_.posted(Opcode::kWrite);
    clock_.Advance(milliseconds(1));
    Step();
    EXPECT_LE(device_.posted(Opcode::kWrite) - before, 64u);
  }
  for (const auto& side : sides_) EXPECT_TRUE(side->handler.closed);
  EXPECT_EQ(device_.posted(Opcode::kWrite), kPeers);
}

TEST_F(ManyPeers, AreLookedAtAllAtOnceByAPollerThatSlept) {
  constexpr size_t kPeers = 130;
  Open(kPeers, {.ring_depth = 16, .slot_bytes = 512, .detection_time = kDetection});
  while (device_.posted(Opcode::kWrite) == 0) {
    poller_->Arm();
    clock_.Advance(milliseconds(1));
    Step();
  }
  EXPECT_EQ(device_.posted(Opcode::kWrite), kPeers);
}

// Two connections: the first one's peer is looked for, the second keeps the poller busy.
class BusyPoller : public ManyPeers {
 protected:
  static constexpr uint32_t kRing = 64;

  BusyPoller() { Open(2, {.ring_depth = kRing, .detection_time = kDetection}); }
  // As many frames as the ring takes, which lie there until the poller comes.
  void SendManyFrames() {
    for (uint32_t i = 0; i < kRing - 8; ++i) busy().peer->Send(CancelFrame(1));
  }

  Side& silent() { return *sides_[0]; }
  Side& busy() { return *sides_[1]; }
};

TEST_F(BusyPoller, FindsTheAnswerBehindWhatCameBeforeIt) {
  device_.set_sends_held(true);
  // To right before the look in which the peer would be suspected.
  for (int i = 0; i < 39; ++i) {
    clock_.Advance(kLook / 10);
    Step();
  }
  ASSERT_GT(device_.posted(Opcode::kWrite), 0u);
  device_.set_sends_held(false);
  SendManyFrames();
  clock_.Advance(kLook);
  // The look comes after the first 32 completions; the answer is not among them.
  for (int i = 0; i < 10; ++i) Step();
  EXPECT_EQ(busy().handler.frames.size(), kRing - 8);
  EXPECT_FALSE(silent().handler.closed);
}

TEST_F(BusyPoller, JudgesAPeerAlthoughItNeverFindsItsQueueEmpty) {
  device_.set_one_sided_held(true);
  for (int i = 0; i < 100 && !silent().handler.closed; ++i) {
    clock_.Advance(kLook / 10);
    for (int burst = 0; burst < 10; ++burst) {
      busy().peer->Send(CancelFrame(1));
      Step();
    }
  }
  ASSERT_TRUE(silent().handler.closed);
  EXPECT_THAT(*silent().handler.closed, Is(absl::StatusCode::kUnavailable, "did not answer"));
  EXPECT_FALSE(busy().handler.closed);
}

// ---- Other carriers ----

TEST_F(VanishedPeer, IsAskedByAReadWhereTheSuccessOfASendSaysNothing) {
  change_ = [](Capabilities& can) { can.error_tells_sender = false; };
  Open(kOptions);
  Pass(kDetection);
  EXPECT_GT(faults_->posted(Opcode::kRead), 0u);
  EXPECT_EQ(faults_->posted(Opcode::kWrite), 0u);
  EXPECT_FALSE(handler().closed);
}

TEST_F(VanishedPeer, IsGoneWhereSendsSucceedAndReadsAreNotAnswered) {
  change_ = [](Capabilities& can) { can.error_tells_sender = false; };
  Open(kOptions, {.ring_depth = 4096});
  faults_->set_one_sided_held(true);
  milliseconds passed{0};
  for (; !handler().closed && passed < 3 * kDetection; passed += milliseconds(5)) {
    for (int i = 0; i < 4; ++i) under_test_->TrySend(RequestFrame(1, 2, "x"));  // One is signalled.
    Pass(milliseconds(5));
  }
  EXPECT_LE(passed, kDetection);
}

TEST_F(VanishedPeer, ACloseWaitsForAnAnswerWhereTheSuccessOfASendSaysNothing) {
  change_ = [](Capabilities& can) { can.error_tells_sender = false; };
  Open(kOptions);
  faults_->set_one_sided_held(true);
  endpoint().Close();
  Pass(milliseconds(20));
  EXPECT_FALSE(handler().closed);
  faults_->set_one_sided_held(false);
  Pass(milliseconds(20));
  EXPECT_TRUE(handler().closed);
}

TEST_F(VanishedPeer, AConnectingSideSendsAGrantAtOnceWhereTheOtherMustNotSpeakFirst) {
  change_ = [](Capabilities& can) { can.connecting_side_sends_first = true; };
  OpenConnecting(kOptions);
  EXPECT_EQ(peer().AwaitFrame(), GrantFrame(0));
}

TEST_F(VanishedPeer, AConnectingSideSaysNothingByItselfElsewhere) {
  OpenConnecting(kOptions);
  Pass(kDetection);
  EXPECT_EQ(peer().FramesWaiting(), 0u);
}

TEST_F(VanishedPeer, AnAcceptingSideThatMustNotSpeakFirstSendsNothingBeforeItHasHeard) {
  change_ = [](Capabilities& can) { can.connecting_side_sends_first = true; };
  Open(kOptions);
  Pass(5 * kDetection);
  EXPECT_EQ(Probes(), 0u);
  EXPECT_FALSE(handler().closed);
  peer().Send(GrantFrame(0));
  Pass(5 * kDetection);
  EXPECT_GT(Probes(), 0u);
  EXPECT_FALSE(handler().closed);
}

TEST_F(VanishedPeer, AnAcceptingSideThatMustNotSpeakFirstGivesUpAfterTenDetectionTimes) {
  change_ = [](Capabilities& can) { can.connecting_side_sends_first = true; };
  Open(kOptions);
  const milliseconds passed = UntilClosed(20 * kDetection);
  EXPECT_GE(passed, 9 * kDetection);
  EXPECT_LE(passed, 11 * kDetection);
}

TEST_F(VanishedPeer, AnAcceptingSideThatMustNotSpeakFirstEndsWithoutACloseFrame) {
  change_ = [](Capabilities& can) { can.connecting_side_sends_first = true; };
  Open(kOptions);
  endpoint().Close();
  EXPECT_TRUE(handler().closed);
  EXPECT_EQ(peer().FramesWaiting(), 0u);
}

// ---- Orderly ends on a wire that takes its time ----

TEST_F(VanishedPeer, ACloseForAProtocolErrorArrivesThoughTheEndpointIsBuriedAtOnce) {
  Open(kOptions);
  logs_.Allow("the peer broke the protocol");
  faults_->set_sends_held(true);
  peer().Send(HexFrame("00"));
  EXPECT_EQ(AwaitClosed().code(), absl::StatusCode::kInternal);
  under_test_->BuryOnly();
  Pass(milliseconds(90));
  EXPECT_EQ(under_test_->poller().endpoint_count(), 1u);
  faults_->set_sends_held(false);
  EXPECT_EQ(KindOf(peer().AwaitFrame()), FrameKind::kClose);
  StepUntil([this] { return under_test_->poller().endpoint_count() == 0; }, "the burial");
  peer().AwaitDisconnected();
}

TEST_F(VanishedPeer, ABurialWaitsForACloseFrameOnlySoLong) {
  Open(kOptions);
  faults_->set_sends_held(true);
  endpoint().Close();
  under_test_->BuryOnly();
  Pass(milliseconds(90));
  EXPECT_EQ(under_test_->poller().endpoint_count(), 1u);
  Pass(milliseconds(20));
  EXPECT_EQ(under_test_->poller().endpoint_count(), 0u);
  peer().AwaitDisconnected();
}

TEST_F(VanishedPeer, ASecondCloseDoesNotCutOffTheFirst) {
  Open(kOptions);
  faults_->set_sends_held(true);
  endpoint().Close();
  endpoint().Close();
  Pass(milliseconds(50));
  EXPECT_FALSE(handler().closed);
  faults_->set_sends_held(false);
  EXPECT_EQ(peer().AwaitFrame(), CloseFrame(CloseHeader::Reason::kGoingAway));
}

// ---- A completion queue that breaks ----

TEST_F(VanishedPeer, ABrokenCompletionQueueEndsItsEndpointsAndFreesThemAtOnce) {
  Open(kOptions);
  logs_.Allow("all connections of a poller end");
  EXPECT_TRUE(under_test_->TrySend(RequestFrame(1, 2, "x")));
  faults_->BreakQueues();
  under_test_->Step();
  ASSERT_TRUE(handler().closed);
  EXPECT_THAT(*handler().closed, Is(absl::StatusCode::kUnavailable,
                                    "the completion queue is broken: the test broke it"));
  under_test_->BuryOnly();
  under_test_->Step();
  EXPECT_EQ(under_test_->poller().endpoint_count(), 0u);
  EXPECT_THAT(under_test_->poller().CreateEndpoint(kOptions, &handler(), nullptr),
              Is(absl::StatusCode::kUnavailable, "make a new channel"));
}

TEST_F(VanishedPeer, ACompletionQueueThatCannotBeArmedIsBroken) {
  Open(kOptions);
  logs_.Allow("all connections of a poller end");
  faults_->BreakArming();
  under_test_->poller().Arm();
  under_test_->Step();
  ASSERT_TRUE(handler().closed);
  EXPECT_THAT(*handler().closed, Is(absl::StatusCode::kUnavailable, "queue is broken"));
}

}  // namespace
}  // namespace verbena
