// SPDX-License-Identifier: Apache-2.0
//
// A real server whose handlers run on an executor, and clients that take no answers, send the same
// id twice, cancel, or vanish while a handler runs.

#include <atomic>
#include <string>

#include "verbena/tests/protocol/server_fixture.h"
#include "verbena/tests/support/thread_executor.h"

namespace verbena {
namespace {

class ServerOnExecutor : public ServerProtocolTest {
 protected:
  ~ServerOnExecutor() override {
    go_on_ = true;
    peer_.reset();
    if (server_ != nullptr) Shutdown();
  }
  // "wait" waits until go_on_ or until it is cancelled; everything else is echoed.
  void Start() {
    StartServer(
        [this](ServerContext* context, const std::string& request, std::string* response) {
          ++running_;
          if (request == "wait") {
            WaitUntil([&] { return go_on_ || context->IsCancelled(); });
          }
          if (context->IsCancelled()) ++cancelled_;
          --running_;
          *response = request;
          return absl::OkStatus();
        },
        [this](ServerOptions& options) { options.executor = &executor_; });
  }
  uint64_t InFlight() { return server_->statistics().calls_in_flight; }

  std::atomic<bool> go_on_{false};
  std::atomic<int> running_{0};
  std::atomic<int> cancelled_{0};
  ThreadExecutor executor_{2};
};

TEST_F(ServerOnExecutor, AnswersComeAsHandlersEndAndNotInTheOrderOfTheRequests) {
  Start();
  OpenPeer();
  peer_->Send(Request(1, "wait"));
  ASSERT_TRUE(WaitUntil([this] { return running_ == 1; }));
  peer_->Send(Request(2, "at once"));
  EXPECT_EQ(AwaitAnswer().call_id, 2u);
  go_on_ = true;
  EXPECT_EQ(AwaitAnswer().call_id, 1u);
}

TEST_F(ServerOnExecutor, ReceiveACancelExpectThatTheHandlerIsToldAndNothingIsAnswered) {
  Start();
  OpenPeer();
  peer_->Send(Request(1, "wait"));
  ASSERT_TRUE(WaitUntil([this] { return running_ == 1; }));
  peer_->Send(CancelFrame(1));
  EXPECT_TRUE(WaitUntil([this] { return cancelled_ == 1; }));
  peer_->Send(Request(2, "next"));
  EXPECT_EQ(AwaitAnswer().call_id, 2u);
}

TEST_F(ServerOnExecutor, ReceiveTheSameIdTwiceExpectTwoAnswers) {
  Start();
  OpenPeer();
  peer_->Send(Request(7, "wait"));
  peer_->Send(Request(7, "wait"));
  ASSERT_TRUE(WaitUntil([this] { return running_ == 2; }));
  go_on_ = true;
  EXPECT_EQ(AwaitAnswer().call_id, 7u);
  EXPECT_EQ(AwaitAnswer().call_id, 7u);
}

TEST_F(ServerOnExecutor, ReceiveAShortTimeoutExpectDeadlineExceededWhileTheHandlerStillRuns) {
  Start();
  OpenPeer();
  peer_->Send(Request(1, "wait", /*timeout_us=*/20'000));
  EXPECT_EQ(AwaitAnswer().status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(server_->statistics().calls_deadline_exceeded, 1u);
  EXPECT_TRUE(WaitUntil([this] { return InFlight() == 0; }));
  peer_->Send(Request(2, "next"));
  EXPECT_EQ(AwaitAnswer().call_id, 2u);
}

TEST_F(ServerOnExecutor, APeerThatReturnsNoCreditsGetsTheRestOnceItDoes) {
  Start();
  OpenPeer({.ring_depth = 16});
  for (uint32_t i = 1; i <= 40; ++i) peer_->Send(Request(i, "x"));
  for (int i = 0; i < 12; ++i) AwaitAnswer();
  for (int left = 28; left > 0;) {
    peer_->Send(GrantFrame(12));
    for (int i = 0; i < 12 && left > 0; ++i, --left) AwaitAnswer();
  }
  EXPECT_TRUE(WaitUntil([this] { return InFlight() == 0; }));
}

TEST_F(ServerOnExecutor, APeerThatTakesNoAnswersDoesNotKeepTheServerFromEnding) {
  Start();
  OpenPeer({.ring_depth = 16});
  for (uint32_t i = 1; i <= 40; ++i) peer_->Send(Request(i, "wait"));
  ASSERT_TRUE(WaitUntil([this] { return InFlight() == 40; }));
  Shutdown();
}

TEST_F(ServerOnExecutor, APeerThatTakesNoAnswersAndVanishesIsFreed) {
  Start();
  OpenPeer({.ring_depth = 16});
  for (uint32_t i = 1; i <= 128; ++i) peer_->Send(Request(i, "x"));
  // Two of the twelve credits may have gone to grants.
  for (int i = 0; i < 10; ++i) AwaitAnswer();
  peer_->Vanish();
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  EXPECT_TRUE(WaitUntil([this] { return InFlight() == 0; }));
  ExpectServesOthers();
}

TEST_F(ServerOnExecutor, APeerThatVanishesWhileItsHandlersRunIsFreedWhenTheyEnd) {
  Start();
  OpenPeer();
  for (uint32_t i = 1; i <= 6; ++i) peer_->Send(Request(i, "wait"));
  ASSERT_TRUE(WaitUntil([this] { return InFlight() == 6 && running_ == 2; }));
  peer_->Vanish();
  EXPECT_TRUE(WaitUntil([this] { return cancelled_ == 2; })) << "the handlers are told";
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }));
  EXPECT_EQ(InFlight(), 0u);
  ExpectServesOthers();
}

TEST_F(ServerOnExecutor, MoreCallsThanOneConnectionMayRunExpectResourceExhausted) {
  Start();
  OpenPeer({.ring_depth = 2048, .slot_bytes = 512});
  uint32_t refused = 0;
  uint32_t sent = 0;
  // Credits come back as fast as requests are taken.
  while (refused == 0 && sent < 1100) {
    for (int i = 0; i < 32; ++i) peer_->Send(Request(++sent, "wait"));
    while (peer_->FramesWaiting() > 0) {
      const Frame frame = peer_->AwaitFrame();
      if (KindOf(frame) == FrameKind::kResponse) ++refused;
    }
    ASSERT_TRUE(WaitUntil([&] {
      peer_->Step();
      return InFlight() + refused >= sent || InFlight() == 1024;
    }));
  }
  EXPECT_EQ(InFlight(), 1024u);
  go_on_ = true;
}

}  // namespace
}  // namespace verbena
