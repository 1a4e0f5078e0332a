// SPDX-License-Identifier: Apache-2.0
//
// The end of a server: bounded, self-driving, and every call ends.

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

using std::chrono::steady_clock;

class Shutdown : public TrialTest {
 protected:
  using WorkCall = AsyncCall<trial::WorkRequest>;
  void StartWork(trial::Trial::Stub& stub, WorkCall& call, uint32_t work_ms) {
    call.request.set_milliseconds(work_ms);
    stub.async()->Work(&call.context, &call.request, &call.response, call.Done());
  }
};

TEST_F(Shutdown, AServerWithoutConnectionsEndsAtOnce) {
  StartServer();
  const auto start = steady_clock::now();
  server_->Shutdown(std::chrono::seconds(60));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(Shutdown, AServerWithIdleConnectionsEndsAtOnce) {
  StartServer([](ServerOptions& options) { options.poller_count = 2; });
  std::vector<std::unique_ptr<trial::Trial::Stub>> stubs;
  for (int i = 0; i < 5; ++i) {
    stubs.push_back(MakeStub());
    EXPECT_THAT(Echo(*stubs.back(), "x").status, IsOk());
  }
  const auto start = steady_clock::now();
  StopServer(std::chrono::seconds(60));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(Shutdown, CallsInFlightFinishWithinTheGrace) {
  StartServerOnExecutor(4);
  auto stub = MakeStub();
  std::array<WorkCall, 4> calls;
  for (WorkCall& call : calls) StartWork(*stub, call, 200);
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 4; }));
  StopServer(milliseconds(20'000));
  for (WorkCall& call : calls) {
    EXPECT_THAT(call.Await(), IsOk());
    EXPECT_EQ(call.response.text(), "worked");
  }
}

TEST_F(Shutdown, CallsThatOutliveTheGraceAreToldAndEnd) {
  StartServerOnExecutor(2);
  auto stub = MakeStub();
  std::array<WorkCall, 2> calls;
  for (WorkCall& call : calls) StartWork(*stub, call, 15'000);
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 2; }));
  const auto start = steady_clock::now();
  StopServer(milliseconds(50));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(service_.cancelled, 2);
  for (WorkCall& call : calls) EXPECT_FALSE(call.Await().ok());
}

TEST_F(Shutdown, CallsThatStillWaitForTheExecutorEndUnavailableAndDidNotRun) {
  StartServerOnExecutor(1);
  auto stub = MakeStub();
  WorkCall running;
  WorkCall waiting;
  StartWork(*stub, running, 15'000);
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  StartWork(*stub, waiting, 15'000);
  ASSERT_TRUE(WaitUntil([&] { return server_->statistics().calls_in_flight == 2; }));
  StopServer(milliseconds(50));
  running.Await();
  EXPECT_EQ(waiting.Await().code(), absl::StatusCode::kUnavailable) << waiting.Await();
  EXPECT_EQ(service_.cancelled, 1) << "the second handler was started";
}

TEST_F(Shutdown, ACallDuringTheGraceIsRefusedUnavailable) {
  StartServerOnExecutor(1);
  auto stub = MakeStub();
  WorkCall running;
  StartWork(*stub, running, 500);
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  std::thread ending([&] { server_->Shutdown(milliseconds(20'000)); });
  absl::Status refused;
  EXPECT_TRUE(WaitUntil([&] {
    refused = Echo(*stub, "x").status;
    return !refused.ok();
  }));
  EXPECT_THAT(refused, Is(absl::StatusCode::kUnavailable, ""));
  EXPECT_THAT(running.Await(), IsOk());
  ending.join();
}

TEST_F(Shutdown, ANewConnectionDuringTheGraceIsRefused) {
  StartServerOnExecutor(1);
  auto stub = MakeStub();
  WorkCall running;
  StartWork(*stub, running, 300);
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  std::thread ending([&] { server_->Shutdown(milliseconds(20'000)); });
  std::this_thread::sleep_for(milliseconds(50));
  auto late = trial::Trial::NewStub(CreateChannel(target_));
  EXPECT_EQ(Echo(*late, "x").status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(running.Await(), IsOk());
  ending.join();
}

TEST_F(Shutdown, ShutdownTwiceAndFromManyThreadsIsTheSameAsOnce) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      server_->Shutdown(milliseconds(100));
      EXPECT_EQ(server_->statistics().connections, 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  server_->Shutdown();
  EXPECT_EQ(server_->statistics().calls_started, 1u);
}

TEST_F(Shutdown, WaitReturnsWhenTheServerHasEnded) {
  StartServer();
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    server_->Wait();
    returned = true;
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(returned);
  server_->Shutdown();
  waiter.join();
}

TEST_F(Shutdown, ADestructorShutsDown) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  server_.reset();
  EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(Shutdown, EveryCallOfABusyChannelEnds) {
  StartServerOnExecutor(2, [](ServerOptions& options) { options.poller_count = 2; });
  auto stub = MakeStub();
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        const absl::Status status = Echo(*stub, "x").status;
        EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
      }
    });
  }
  std::this_thread::sleep_for(milliseconds(50));
  StopServer(milliseconds(100));
  std::this_thread::sleep_for(milliseconds(20));
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace verbena
