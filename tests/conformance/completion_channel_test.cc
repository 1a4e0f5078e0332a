// SPDX-License-Identifier: Apache-2.0
//
// Sleeping on a completion channel: what wakes, what does not, and that no wake-up is lost.
// ibv_req_notify_cq(3), ibv_get_cq_event(3).

#include <poll.h>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;

class Sleeping : public TwoParties {
 protected:
  void SetUp() override {
    TwoParties::SetUp();
    if (IsSkipped()) return;
    ReplaceParties({.sleeps = true});
    Connect();
    sleeper_ = std::make_unique<Loop>(subject());
    MoveServerAside();
  }
  void TearDown() override {
    if (has_parties()) server().MoveTo(loop());
  }

  // From here on only the test itself polls the server's queue.
  void MoveServerAside() { server().MoveTo(*sleeper_); }
  void Arm(bool solicited_only = false) {
    ASSERT_THAT(server().queue().Arm(solicited_only), IsOk());
  }
  bool IsReadable(std::chrono::milliseconds bound) {
    pollfd entry = {.fd = server().channel().fd(), .events = POLLIN, .revents = 0};
    return poll(&entry, 1, static_cast<int>(bound.count())) == 1;
  }
  void ExpectWakes() { EXPECT_TRUE(IsReadable(kHangBound)) << "the sleeper was not woken"; }
  void ExpectSleeps() { EXPECT_FALSE(IsReadable(kQuietTime)) << "woken without a reason"; }
  // Takes what is there, without waiting.
  size_t Poll() {
    WorkCompletion entries[64];
    size_t total = 0;
    while (size_t count = server().queue().Poll(entries)) total += count;
    return total;
  }
  void PostRecvs(size_t count) {
    for (uint64_t i = 0; i < count; ++i) server().PostRecv(i, {});
  }
  void SendOne() {
    client().Post(Send(1, {}));
    client().ExpectSuccess(1);
  }

 private:
  std::unique_ptr<Loop> sleeper_;
};

TEST_P(Sleeping, ArmedQueueWakesAtTheNextCompletion) {
  PostRecvs(1);
  Arm();
  ExpectSleeps();
  SendOne();
  ExpectWakes();
  server().channel().Drain();
  EXPECT_EQ(Poll(), 1u);
}

TEST_P(Sleeping, UnarmedQueueNeverWakes) {
  PostRecvs(2);
  SendOne();
  SendOne();
  ExpectSleeps();
  EXPECT_EQ(Poll(), 2u);
}

TEST_P(Sleeping, OneArmingIsOneEvent) {
  PostRecvs(3);
  Arm();
  SendOne();
  ExpectWakes();
  server().channel().Drain();
  SendOne();
  SendOne();
  ExpectSleeps();
  EXPECT_EQ(Poll(), 3u);
}

TEST_P(Sleeping, DrainedChannelIsQuietUntilArmedAgain) {
  PostRecvs(2);
  Arm();
  SendOne();
  ExpectWakes();
  server().channel().Drain();
  ExpectSleeps();
  EXPECT_EQ(Poll(), 1u);
  Arm();
  ExpectSleeps();
  SendOne();
  ExpectWakes();
}

TEST_P(Sleeping, DrainWithoutEventsIsHarmless) {
  server().channel().Drain();
  PostRecvs(1);
  Arm();
  server().channel().Drain();
  SendOne();
  ExpectWakes();
  server().channel().Drain();
  server().channel().Drain();
  EXPECT_EQ(Poll(), 1u);
}

// A completion between the last poll and the arming makes no event: hence the second poll.
TEST_P(Sleeping, PollArmPollFindsWhatCameInBetween) {
  PostRecvs(1);
  EXPECT_EQ(Poll(), 0u);
  SendOne();
  Arm();
  EXPECT_EQ(Poll(), 1u);
}

TEST_P(Sleeping, SolicitedOnlySleepsThroughOrdinaryMessages) {
  PostRecvs(3);
  Arm(true);
  SendOne();
  SendOne();
  ExpectSleeps();
  client().Post(Send(1, {}).Solicited());
  client().ExpectSuccess(1);
  ExpectWakes();
  server().channel().Drain();
  EXPECT_EQ(Poll(), 3u);
}

TEST_P(Sleeping, SolicitedWriteWithImmWakes) {
  REQUIRE_CAPABILITY(write_with_imm);
  PostRecvs(2);
  Arm(true);
  client().Post(WriteWithImm(1, {}, {}, 7));
  client().ExpectSuccess(1);
  ExpectSleeps();
  client().Post(WriteWithImm(1, {}, {}, 7).Solicited());
  client().ExpectSuccess(1);
  ExpectWakes();
}

TEST_P(Sleeping, SolicitedMessageWakesWhoAskedForAny) {
  PostRecvs(1);
  Arm(false);
  client().Post(Send(1, {}).Solicited());
  client().ExpectSuccess(1);
  ExpectWakes();
}

// ibv_req_notify_cq(3): a request for any completion is stronger than one for solicited ones,
// whichever comes last before the event.
TEST_P(Sleeping, ArmedForAnyStaysSoWhenArmedForSolicitedToo) {
  PostRecvs(1);
  Arm(false);
  Arm(true);
  SendOne();
  ExpectWakes();
}

TEST_P(Sleeping, ErrorCompletionWakesEvenWhoAskedForSolicitedOnly) {
  PostRecvs(1);
  Arm(true);
  const Buffer& from = client().Allocate(64);
  client().Post(Send(1, {from.First(8)}));  // Too long for an empty receive.
  client().NextCompletion();
  ExpectWakes();
  server().channel().Drain();
  EXPECT_EQ(Poll(), 1u);
}

TEST_P(Sleeping, FlushWakes) {
  PostRecvs(2);
  Arm(true);
  server().pair().MoveToError();
  ExpectWakes();
  server().channel().Drain();
  EXPECT_EQ(Poll(), 2u);
}

TEST_P(Sleeping, FlushedPostWakes) {
  server().pair().MoveToError();
  Poll();
  Arm(true);
  PostRecvs(1);
  ExpectWakes();
}

TEST_P(Sleeping, DisconnectWakesByTheFlushOrTheEvent) {
  PostRecvs(2);
  Arm();
  client().manager().Disconnect(client().pair());
  // A program sleeps on both descriptors, and this thread only polls what is readable.
  size_t flushed = 0;
  bool told = false;
  for (int step = 0; step < 20 && !(told && flushed == 2); ++step) {
    pollfd entries[] = {{.fd = server().channel().fd(), .events = POLLIN, .revents = 0},
                        {.fd = server().manager().fd(), .events = POLLIN, .revents = 0}};
    ASSERT_GT(poll(entries, 2, static_cast<int>(kHangBound.count())), 0);
    if (entries[1].revents != 0) {
      ConnectionEvent event;
      while (server().manager().PollEvent(&event)) {
        told |= event.type == ConnectionEvent::Type::kDisconnected;
      }
    }
    server().channel().Drain();
    flushed += Poll();
    Arm();
    flushed += Poll();
  }
  EXPECT_EQ(flushed, 2u);
  EXPECT_TRUE(told);
}

TEST_P(Sleeping, SendCompletionWakesToo) {
  PostRecvs(1);
  const Buffer& into = server().Allocate(64);
  const Buffer& from = client().Allocate(64);
  Arm();
  server().Post(Read(5, {into.First(8)}, from.Start()));
  ExpectWakes();
  EXPECT_EQ(Poll(), 1u);
}

TEST_P(Sleeping, QueuesShareAChannel) {
  const auto second = Must(device().CreateCompletionQueue(64, &server().channel()));
  QueuePairOptions options = server().DefaultOptions();
  options.send_depth = options.recv_depth = 8;
  options.send_queue = options.recv_queue = second.get();
  const auto client_pair = client().NewQueuePair(client().DefaultOptions());
  const auto server_pair = server().NewQueuePair(options);
  server().MoveTo(loop());
  Join(client(), *client_pair, server(), *server_pair, FreshAddress());
  server().PostRecv(*server_pair, 1, {});
  ASSERT_THAT(second->Arm(false), IsOk());
  client().Post(*client_pair, Send(1, {}));
  client().ExpectSuccess(1);
  ExpectWakes();
  server().channel().Drain();
  WorkCompletion entry;
  EXPECT_EQ(second->Poll({&entry, 1}), 1u);
}

// The arming is the queue's: which of its pairs completes first does not matter to the others.
TEST_P(Sleeping, OneArmingIsOneEventOfAllPairs) {
  server().MoveTo(loop());
  const Connection other = ConnectOneMore(client(), server(), FreshAddress());
  MoveServerAside();
  PostRecvs(1);
  server().PostRecv(*other.server, 1, {});
  Arm();
  SendOne();
  ExpectWakes();
  server().channel().Drain();
  client().Post(*other.client, Send(1, {}));
  client().ExpectSuccess(1);
  ExpectSleeps();
  EXPECT_EQ(Poll(), 2u);
}

// Two threads that sleep for every message, 10,000 times around.
class SleepingPingPong : public TwoParties {
 protected:
  static constexpr uint64_t kRounds = 10000;
  static constexpr uint64_t kRing = 4;     // Receives posted.
  static constexpr uint64_t kSignal = 16;  // Every so many sends one makes a completion.
  static constexpr uint64_t kSendId = 1000;

  void Run(bool solicited) {
    if (IsSkipped()) return;
    ReplaceParties({.sleeps = true});
    Connect();
    for (Party* party : {&client(), &server()}) {
      for (uint64_t i = 0; i < kRing; ++i) party->PostRecv(i, {});
    }
    const uint64_t rounds = Effort(kRounds);
    std::thread other = StartThread([&] {
      for (uint64_t i = 0; i < rounds; ++i) {
        if (!SleepForMessage(server(), solicited, i)) return;
        SendMessage(server(), solicited, i);
      }
    });
    for (uint64_t i = 0; i < rounds; ++i) {
      SendMessage(client(), solicited, i);
      if (!SleepForMessage(client(), solicited, i)) break;
    }
    other.join();
  }

 private:
  static void SendMessage(Party& party, bool solicited, uint64_t round) {
    Request send = Send(kSendId, {});
    if (round % kSignal != 0) send.Unsignaled();
    if (solicited) send.Solicited();
    party.Post(send);
  }

  // Takes one message; posts its receive again. False when none came.
  static bool TakeMessage(Party& party, bool* bad) {
    WorkCompletion entry;
    while (party.queue().Poll({&entry, 1}) == 1) {
      if (entry.status != Status::kSuccess) {
        ADD_FAILURE() << CompletionStatusName(entry.status);
        *bad = true;
        return false;
      }
      if (entry.wr_id == kSendId) continue;
      party.PostRecv(entry.wr_id, {});
      return true;
    }
    return false;
  }

  static bool SleepForMessage(Party& party, bool solicited, uint64_t round) {
    bool bad = false;
    while (!bad) {
      if (TakeMessage(party, &bad)) return true;
      if (!party.queue().Arm(solicited).ok()) break;
      if (TakeMessage(party, &bad)) return true;
      pollfd entry = {.fd = party.channel().fd(), .events = POLLIN, .revents = 0};
      if (poll(&entry, 1, static_cast<int>(kHangBound.count())) != 1) {
        ADD_FAILURE() << "a wake-up was lost in round " << round;
        return false;
      }
      party.channel().Drain();
    }
    return false;
  }
};

TEST_P(SleepingPingPong, LosesNoWakeUp) { Run(false); }

TEST_P(SleepingPingPong, LosesNoSolicitedWakeUp) { Run(true); }

VERBENA_CONFORMANCE(Sleeping);
VERBENA_CONFORMANCE(SleepingPingPong);

}  // namespace
}  // namespace verbena::conformance
