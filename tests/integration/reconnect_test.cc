// SPDX-License-Identifier: Apache-2.0
//
// A channel outlives its server, and finds the next one at the same address.

#include <string>
#include <thread>

#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

class Reconnect : public TrialTest {
 protected:
  ChannelOptions Impatient() {
    ChannelOptions options;
    options.reconnect_backoff_min = options.reconnect_backoff_max = milliseconds(1);
    return options;
  }
};

TEST_F(Reconnect, AChannelFindsAServerThatStartsLater) {
  auto stub = MakeStub(Impatient());
  EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
  StartServer();
  EXPECT_TRUE(WaitUntil([&] { return Echo(*stub, "x").status.ok(); }));
}

TEST_F(Reconnect, AChannelFindsItsServerAgainAfterEachRestart) {
  auto channel = MakeChannel(Impatient());
  auto stub = trial::Trial::NewStub(channel);
  for (int round = 1; round <= 5; ++round) {
    StartServer();
    EXPECT_TRUE(WaitUntil([&] { return Echo(*stub, "x").status.ok(); }));
    EXPECT_THAT(Echo(*stub, "x").status, IsOk());
    EXPECT_EQ(channel->statistics().connects, static_cast<uint64_t>(round));
    StopServer();
    EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
  }
}

TEST_F(Reconnect, ACallbackThatRetriesForEverGetsThrough) {
  auto stub = MakeStub(Impatient());
  AsyncCall<trial::Text> call;
  std::atomic<int> attempts{0};
  std::unique_ptr<ClientContext> context;
  std::function<void()> start = [&] {
    context = std::make_unique<ClientContext>();
    ++attempts;
    stub->async()->Echo(context.get(), &call.request, &call.response,
                        [&, done = call.Done()](absl::Status status) {
                          status.ok() ? done(status) : start();
                        });
  };
  start();
  ASSERT_TRUE(WaitUntil([&] { return attempts > 10; }));
  StartServer();
  EXPECT_THAT(call.Await(), IsOk());
}

TEST_F(Reconnect, ThreadsThatCallWhileTheServerRestartsSeeUnavailableAndNothingElse) {
  StartServer();
  auto stub = MakeStub(Impatient());
  std::atomic<bool> stop{false};
  std::atomic<int> ok{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        const absl::Status status = Echo(*stub, "x").status;
        ok += status.ok() ? 1 : 0;
        EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
      }
    });
  }
  for (int round = 0; round < 4; ++round) {
    const int before = ok;
    EXPECT_TRUE(WaitUntil([&] { return ok > before + 10; }));
    StopServer();
    StartServer();
  }
  const int before = ok;
  EXPECT_TRUE(WaitUntil([&] { return ok > before + 10; }));
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace verbena
