// SPDX-License-Identifier: Apache-2.0
//
// The end of a channel: whatever state it is in, its calls end CANCELLED, and the server forgets it.

#include <string>
#include <vector>

#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

class ChannelEnd : public TrialTest {
 protected:
  ~ChannelEnd() override {
    if (server_ != nullptr) {
      EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 0; }));
    }
  }
};

TEST_F(ChannelEnd, AChannelThatWasNeverUsedLeavesNothing) { CreateChannel(target_); }

TEST_F(ChannelEnd, AChannelWithABadAddressLeavesNothing) { CreateChannel("nonsense"); }

TEST_F(ChannelEnd, AnIdleChannelSaysGoodbye) {
  StartServer();
  auto stub = trial::Trial::NewStub(CreateChannel(target_));
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  EXPECT_EQ(server_->statistics().connections, 1u);
}

TEST_F(ChannelEnd, CallsInFlightEndCancelledAndTheirHandlersAreTold) {
  StartServerOnExecutor(3);
  auto stub = trial::Trial::NewStub(CreateChannel(target_));
  std::vector<std::unique_ptr<AsyncCall<trial::WorkRequest>>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(std::make_unique<AsyncCall<trial::WorkRequest>>());
    calls[i]->request.set_milliseconds(15'000);
    stub->async()->Work(&calls[i]->context, &calls[i]->request, &calls[i]->response,
                        calls[i]->Done());
  }
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 3; }));
  stub.reset();
  for (auto& call : calls) {
    EXPECT_TRUE(call->done()) << "calls end before the destructor returns";
    EXPECT_THAT(call->Await(), Is(absl::StatusCode::kCancelled, "the channel was destroyed"));
  }
  EXPECT_TRUE(WaitUntil([&] { return service_.cancelled == 3; }));
}

TEST_F(ChannelEnd, CallsThatHaveOnlyJustStartedEnd) {
  StartServer();
  for (int round = 0; round < 30; ++round) {
    auto stub = trial::Trial::NewStub(CreateChannel(target_));
    if (round % 2 == 0) {
      EXPECT_THAT(Echo(*stub, "connects").status, IsOk());
    }
    std::vector<std::unique_ptr<AsyncCall<trial::Text>>> calls;
    for (int i = 0; i < 10; ++i) {
      calls.push_back(std::make_unique<AsyncCall<trial::Text>>());
      stub->async()->Echo(&calls[i]->context, &calls[i]->request, &calls[i]->response,
                          calls[i]->Done());
    }
    stub.reset();
    for (auto& call : calls) {
      ASSERT_TRUE(call->done()) << "calls end before the destructor returns";
      EXPECT_TRUE(call->Await().ok() || absl::IsCancelled(call->Await())) << call->Await();
    }
  }
}

TEST_F(ChannelEnd, ACallThatWaitsForACreditEndsCancelled) {
  StartServer([](ServerOptions& options) { options.endpoint.ring_depth = 16; });
  auto stub = trial::Trial::NewStub(CreateChannel(target_));
  std::vector<std::unique_ptr<AsyncCall<trial::WorkRequest>>> calls;
  for (int i = 0; i < 40; ++i) {
    calls.push_back(std::make_unique<AsyncCall<trial::WorkRequest>>());
    calls[i]->request.set_milliseconds(50);
    stub->async()->Work(&calls[i]->context, &calls[i]->request, &calls[i]->response,
                        calls[i]->Done());
  }
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  stub.reset();
  int cancelled = 0;
  for (auto& call : calls) {
    ASSERT_TRUE(call->done());
    cancelled += absl::IsCancelled(call->Await()) ? 1 : 0;
  }
  EXPECT_GT(cancelled, 20);
}

TEST_F(ChannelEnd, AChannelWhoseServerIsGoneEndsAtOnce) {
  StartServer();
  auto stub = trial::Trial::NewStub(CreateChannel(target_));
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  server_->Shutdown();
  const auto start = std::chrono::steady_clock::now();
  stub.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace verbena
