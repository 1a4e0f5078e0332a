// SPDX-License-Identifier: Apache-2.0
//
// The other side vanishes without a word, or seems to: it is busy, or our own thread is. And a
// device that breaks. Times are short here, so that the tests are; what a peer is given is measured
// in tests/protocol, in virtual time.

#include <string>
#include <thread>

#include "verbena/tests/integration/trial_fixture.h"
#include "verbena/tests/support/faulty_device.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {
namespace {

class VanishedPeers : public TrialTest {
 protected:
  ~VanishedPeers() override { TearDownAll(); }  // While the device is there.

  // A channel on the device with the faults.
  ChannelOptions OnFaultyDevice() {
    ChannelOptions options;
    options.devices = {&device_};
    options.endpoint.detection_time = milliseconds(100);
    options.connect_timeout = milliseconds(50);
    options.reconnect_backoff_min = options.reconnect_backoff_max = milliseconds(1);
    return options;
  }
  static Change WithDetectionTime(milliseconds time) {
    return [time](ServerOptions& options) { options.endpoint.detection_time = time; };
  }
  Change ServerOnFaultyDevice() {
    return [this](ServerOptions& options) {
      options.devices = {&device_};
      options.endpoint.detection_time = milliseconds(100);
    };
  }

  FaultyDevice device_{Must(CreateSoftDevice())};
};

TEST_F(VanishedPeers, ACallInFlightEndsUnavailableAndMayHaveRun) {
  StartServerOnExecutor(1);
  auto channel = MakeChannel(OnFaultyDevice());
  auto stub = trial::Trial::NewStub(channel);
  AsyncCall<trial::WorkRequest> call;
  call.request.set_milliseconds(20'000);
  stub->async()->Work(&call.context, &call.request, &call.response, call.Done());
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  device_.set_network_lost(true);
  EXPECT_THAT(call.Await(), Is(absl::StatusCode::kUnavailable, "the peer did not answer for"));
  EXPECT_THAT(call.Await(), Is(absl::StatusCode::kUnavailable, "may have run"));
  EXPECT_EQ(channel->statistics().peers_lost, 1u);
  EXPECT_EQ(channel->statistics().disconnects, 1u);
}

TEST_F(VanishedPeers, ABlockingCallEndsUnavailable) {
  StartServerOnExecutor(1);
  auto stub = MakeStub(OnFaultyDevice());
  std::thread fault([&] {
    EXPECT_TRUE(WaitUntil([&] { return service_.working == 1; }));
    device_.set_network_lost(true);
  });
  EXPECT_THAT(Work(*stub, 20'000), Is(absl::StatusCode::kUnavailable, "did not answer for"));
  fault.join();
}

TEST_F(VanishedPeers, AnIdleChannelNotices) {
  StartServer();
  auto channel = MakeChannel(OnFaultyDevice());
  EXPECT_THAT(channel->WaitForConnected(milliseconds(20'000)), IsOk());
  device_.set_network_lost(true);
  EXPECT_TRUE(WaitUntil([&] { return channel->statistics().disconnects == 1; }));
  EXPECT_EQ(channel->statistics().peers_lost, 1u);
}

TEST_F(VanishedPeers, ACallDuringTheBackoffFailsAtOnceAndSaysForHowLong) {
  StartServer();
  ChannelOptions options = OnFaultyDevice();
  options.reconnect_backoff_min = options.reconnect_backoff_max = std::chrono::minutes(1);
  auto channel = MakeChannel(options);
  auto stub = trial::Trial::NewStub(channel);
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  device_.set_network_lost(true);
  EXPECT_TRUE(WaitUntil([&] { return channel->statistics().peers_lost == 1; }));
  EXPECT_THAT(Echo(*stub, "x").status, Is(absl::StatusCode::kUnavailable, "no answer in time"));
  EXPECT_THAT(Echo(*stub, "x").status,
              Is(absl::StatusCode::kUnavailable, "the next attempt is made in"));
}

TEST_F(VanishedPeers, AServerThatCanBeReachedAgainIsFound) {
  StartServer();
  auto channel = MakeChannel(OnFaultyDevice());
  auto stub = trial::Trial::NewStub(channel);
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  device_.set_network_lost(true);
  EXPECT_TRUE(WaitUntil([&] { return channel->statistics().peers_lost == 1; }));
  EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
  device_.set_network_lost(false);
  EXPECT_TRUE(WaitUntil([&] { return Echo(*stub, "x").status.ok(); }));
  EXPECT_EQ(channel->statistics().connects, 2u);
}

TEST_F(VanishedPeers, ACallToABlackHoleEndsAtItsOwnDeadlineWhileTheAttemptGoesOn) {
  StartServer();
  ChannelOptions options = OnFaultyDevice();
  options.connect_timeout = milliseconds(20'000);
  auto channel = MakeChannel(options);
  auto stub = trial::Trial::NewStub(channel);
  device_.set_network_lost(true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Echo(*stub, "x", milliseconds(30)).status,
                Is(absl::StatusCode::kDeadlineExceeded, "it did not run"));
  }
  EXPECT_EQ(channel->statistics().connects, 0u);
}

TEST_F(VanishedPeers, AServerCancelsTheCallsOfAClientThatVanished) {
  StartServerOnExecutor(1, ServerOnFaultyDevice());
  ChannelOptions options;
  options.endpoint.detection_time = milliseconds(0);
  auto stub = MakeStub(options);
  AsyncCall<trial::WorkRequest> call;
  call.request.set_milliseconds(20'000);
  stub->async()->Work(&call.context, &call.request, &call.response, call.Done());
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  device_.set_network_lost(true);
  EXPECT_TRUE(WaitUntil([&] { return service_.cancelled == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 0; }));
  EXPECT_EQ(server_->statistics().peers_lost, 1u);
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kUnavailable);
}

TEST_F(VanishedPeers, AServerNoticesAnIdleClientThatVanished) {
  StartServer(ServerOnFaultyDevice());
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  device_.set_network_lost(true);
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 0; }));
  EXPECT_EQ(server_->statistics().peers_lost, 1u);
}

// ---- Those who only seem to have vanished ----

TEST_F(VanishedPeers, AHandlerThatBlocksThePollerForLongBreaksNothing) {
  StartServer(WithDetectionTime(milliseconds(50)));
  ChannelOptions options;
  options.endpoint.detection_time = milliseconds(50);
  auto channel = MakeChannel(options);
  auto stub = trial::Trial::NewStub(channel);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Work(*stub, 250), IsOk());
  EXPECT_EQ(channel->statistics().connects, 1u);
  EXPECT_EQ(channel->statistics().peers_lost, 0u);
  EXPECT_EQ(server_->statistics().peers_lost, 0u);
}

TEST_F(VanishedPeers, ACallbackThatRunsForLongBreaksNothing) {
  StartServer(WithDetectionTime(milliseconds(50)));
  ChannelOptions options;
  options.endpoint.detection_time = milliseconds(50);
  auto channel = MakeChannel(options);
  auto stub = trial::Trial::NewStub(channel);
  for (int i = 0; i < 3; ++i) {
    AsyncCall<trial::Text> call;
    stub->async()->Echo(&call.context, &call.request, &call.response,
                        [done = call.Done()](absl::Status status) {
                          std::this_thread::sleep_for(milliseconds(250));
                          done(std::move(status));
                        });
    EXPECT_THAT(call.Await(), IsOk());
  }
  EXPECT_EQ(channel->statistics().connects, 1u);
  EXPECT_EQ(channel->statistics().peers_lost, 0u);
  EXPECT_EQ(server_->statistics().peers_lost, 0u);
}

TEST_F(VanishedPeers, ADetectionTimeOutOfBoundsIsNamed) {
  StartServer();
  ChannelOptions options;
  options.endpoint.detection_time = milliseconds(1);
  auto stub = MakeStub(options);
  EXPECT_THAT(Echo(*stub, "x").status,
              Is(absl::StatusCode::kInvalidArgument, "EndpointOptions::detection_time is 1 ms"));
}

// ---- A device that breaks ----

TEST_F(VanishedPeers, AChannelWhoseQueueBreaksSaysSoToEveryCall) {
  logs_.Allow("all connections of a poller end");
  StartServerOnExecutor(1);
  auto stub = MakeStub(OnFaultyDevice());
  AsyncCall<trial::WorkRequest> call;
  call.request.set_milliseconds(20'000);
  stub->async()->Work(&call.context, &call.request, &call.response, call.Done());
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  device_.BreakQueues();
  EXPECT_THAT(call.Await(), Is(absl::StatusCode::kUnavailable, "the completion queue is broken"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Echo(*stub, "x").status, Is(absl::StatusCode::kUnavailable, "make a new channel"));
  }
  EXPECT_TRUE(WaitUntil([&] { return service_.working == 0; }));
  auto other = MakeStub();
  EXPECT_THAT(Echo(*other, "x").status, IsOk());
}

TEST_F(VanishedPeers, AServerWhoseQueueBreaksEndsItsConnectionsAndTakesNoMore) {
  logs_.Allow("all connections of a poller end");
  logs_.Allow("a connection could not be accepted");
  StartServer(ServerOnFaultyDevice());
  ChannelOptions options;
  options.reconnect_backoff_min = options.reconnect_backoff_max = milliseconds(1);
  auto stub = MakeStub(options);
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  device_.BreakQueues();
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 0; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
    std::this_thread::sleep_for(milliseconds(2));  // The backoff.
  }
}

}  // namespace
}  // namespace verbena
