// SPDX-License-Identifier: Apache-2.0
//
// A server or a client in a process of its own that is killed or stopped in the middle of a call.
// Times are bounds on hanging, except the second that the product promises for a dead server.

#include <signal.h>
#include <sys/prctl.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "verbena/tests/integration/child_process.h"
#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

using std::chrono::steady_clock;

// ---- What the children do ----

int RunServer(const std::string& target) {
  TrialService service;
  ThreadExecutor executor(2);
  ServerBuilder builder;
  builder.AddListeningPort(target).RegisterService(&service).SetExecutor(&executor);
  auto server = Must(builder.BuildAndStart());
  TellReady();
  AwaitEnd();
  server->Shutdown();
  return server->statistics().receiver_not_ready == 0 ? 0 : 1;
}

// Ready when the server works for it.
int RunClient(const std::string& target) {
  auto stub = trial::Trial::NewStub(CreateChannel(target));
  AsyncCall<trial::WorkRequest> call;
  call.request.set_milliseconds(60'000);
  if (!Echo(*stub, "x").status.ok()) return 1;
  stub->async()->Work(&call.context, &call.request, &call.response, call.Done());
  TellReady();
  AwaitEnd();
  call.context.TryCancel();
  call.Await();
  return 0;
}

// Sends as much as it can for ever.
int RunFlood(const std::string& target) {
  auto stub = trial::Trial::NewStub(CreateChannel(target));
  if (!Echo(*stub, "x").status.ok()) return 1;
  TellReady();
  while (true) (void)Echo(*stub, std::string(4000, 'f'));
}

// Sends and asks for long messages for ever.
int RunLongFlood(const std::string& target) {
  auto stub = trial::Trial::NewStub(CreateChannel(target));
  if (!Echo(*stub, "x").status.ok()) return 1;
  BufferPool pool;
  const Buffer buffer = Must(pool.Allocate(3 << 20));
  TellReady();
  while (true) {
    ClientContext context;
    context.AddAttachment(buffer);
    context.set_response_bytes_max(buffer.size());
    trial::Text response;
    (void)stub->Mirror(&context, MakeText("f"), &response);
  }
}

// ---- The tests ----

std::set<std::string> SharedMemoryFiles() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

class TwoProcesses : public TrialTest {
 protected:
  TwoProcesses() : shared_memory_files_(SharedMemoryFiles()) {}
  ~TwoProcesses() override {
    child_.reset();
    TearDownAll();
    EXPECT_EQ(SharedMemoryFiles(), shared_memory_files_);
  }
  void StartChild(const std::string& role) {
    child_ = std::make_unique<ChildProcess>(std::vector<std::string>{role, target_});
    child_->AwaitReady();
  }
  // A blocking call that is in the server's hands when `act` runs.
  template <class Act>
  absl::Status WorkWhile(trial::Trial::Stub& stub, milliseconds timeout, Act act) {
    EXPECT_THAT(Echo(stub, "connects").status, IsOk());
    std::thread actor([&] {
      std::this_thread::sleep_for(milliseconds(200));
      act();
    });
    const absl::Status status = Work(stub, 60'000, timeout);
    ended_ = steady_clock::now();
    actor.join();
    return status;
  }

  const std::set<std::string> shared_memory_files_;
  std::unique_ptr<ChildProcess> child_;
  steady_clock::time_point ended_;
};

TEST_F(TwoProcesses, CallEachOther) {
  StartChild("server");
  auto stub = MakeStub();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Echo(*stub, std::to_string(i)).text, std::to_string(i));
  EXPECT_EQ(child_->End(), 0);
  child_.reset();
}

TEST_F(TwoProcesses, AServerKilledInMidCallExpectUnavailableSoonThatSaysItMayHaveRun) {
  StartChild("server");
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  steady_clock::time_point killed;
  EXPECT_THAT(WorkWhile(*stub, milliseconds(20'000),
                        [&] {
                          killed = steady_clock::now();
                          child_->Signal(SIGKILL);
                        }),
              Is(absl::StatusCode::kUnavailable, "may have run"));
  EXPECT_LT(ended_ - killed, std::chrono::seconds(3));
}

TEST_F(TwoProcesses, AServerKilledInMidCallEndsCallbacksTooWhateverTheClientWaitsLike) {
  for (auto mode : {PollOptions::Mode::kAdaptive, PollOptions::Mode::kEvent,
                    PollOptions::Mode::kBusy}) {
    StartChild("server");
    ChannelOptions options;
    options.poll.mode = mode;
    auto channel = CreateChannel(target_, options);
    ASSERT_THAT(channel->WaitForConnected(milliseconds(20'000)), IsOk());
    auto stub = trial::Trial::NewStub(std::move(channel));
    std::vector<std::unique_ptr<AsyncCall<trial::WorkRequest>>> calls;
    for (int i = 0; i < 8; ++i) {
      calls.push_back(std::make_unique<AsyncCall<trial::WorkRequest>>());
      calls[i]->request.set_milliseconds(60'000);
      stub->async()->Work(&calls[i]->context, &calls[i]->request, &calls[i]->response,
                          calls[i]->Done());
    }
    std::this_thread::sleep_for(milliseconds(200));
    const auto killed = steady_clock::now();
    child_->Kill();
    for (auto& call : calls) {
      EXPECT_THAT(call->Await(), Is(absl::StatusCode::kUnavailable, "may have run"));
    }
    EXPECT_LT(steady_clock::now() - killed, std::chrono::seconds(3));
    EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
    child_.reset();
  }
}

TEST_F(TwoProcesses, AServerKilledWhileIdleIsNoticedByTheNextCallAndReplaced) {
  StartChild("server");
  ChannelOptions options;
  options.reconnect_backoff_min = options.reconnect_backoff_max = milliseconds(1);
  auto stub = MakeStub(options);
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  child_->Kill();
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
  StartChild("server");
  EXPECT_TRUE(WaitUntil([&] { return Echo(*stub, "x").status.ok(); }));
}

TEST_F(TwoProcesses, AServerKilledUnderLoadEndsEveryCall) {
  for (int round = 0; round < 5; ++round) {
    StartChild("server");
    auto stub = trial::Trial::NewStub(CreateChannel(target_));
    std::atomic<bool> stop{false};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&, i] {
        while (!stop) {
          const absl::Status status = Echo(*stub, std::string(i * 2000, 'x')).status;
          EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
          if (!status.ok()) return;
        }
      });
    }
    std::this_thread::sleep_for(milliseconds(20 + 7 * round));
    child_->Kill();
    for (std::thread& caller : callers) caller.join();
    child_.reset();
  }
}

TEST_F(TwoProcesses, AClientKilledInMidCallIsFreedAndOthersAreServed) {
  StartServerOnExecutor(2);
  StartChild("client");
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  EXPECT_EQ(server_->statistics().connections, 1u);
  child_->Kill();
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return service_.cancelled == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().calls_in_flight == 0; }));
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "others").status, IsOk());
}

TEST_F(TwoProcesses, ClientsKilledWhileTheySendAreFreedAndOthersAreServed) {
  StartServer();
  auto stub = MakeStub();
  for (int round = 0; round < 8; ++round) {
    StartChild("flood");
    std::this_thread::sleep_for(milliseconds(5 + 5 * round));
    child_->Kill();
    child_.reset();
    EXPECT_THAT(Echo(*stub, "others").status, IsOk());
  }
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 1; }));
}

TEST_F(TwoProcesses, AServerKilledInTheMiddleOfLongMessagesEndsEveryCallAndFreesItsMemory) {
  auto budget = std::make_shared<MemoryBudget>("the budget of this test", uint64_t{1} << 30);
  BufferPool pool;
  const Buffer buffer = Must(pool.Allocate(5'000'000));
  for (int round = 0; round < 8; ++round) {
    StartChild("server");
    ChannelOptions options;
    options.endpoint.process_budget = budget;
    auto stub = trial::Trial::NewStub(CreateChannel(target_, options));
    std::thread caller([&] {
      while (true) {
        ClientContext context;
        context.set_timeout(milliseconds(20'000));
        context.AddAttachment(buffer);
        trial::Text response;
        const absl::Status status = stub->Mirror(&context, MakeText("x"), &response);
        if (status.ok()) continue;
        EXPECT_TRUE(absl::IsUnavailable(status)) << status;
        return;
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(20'000 + 3'700 * round));
    child_->Kill();
    caller.join();
    stub.reset();
    EXPECT_EQ(budget->bytes_in_use(), 0u) << "of a connection that is gone";
    child_.reset();
  }
}

TEST_F(TwoProcesses, ClientsKilledInTheMiddleOfLongMessagesAreFreedAndOthersAreServed) {
  auto budget = std::make_shared<MemoryBudget>("the budget of this test", uint64_t{1} << 30);
  StartServer([&](ServerOptions& options) { options.endpoint.process_budget = budget; });
  auto stub = MakeStub();
  for (int round = 0; round < 8; ++round) {
    StartChild("long_flood");
    std::this_thread::sleep_for(std::chrono::microseconds(10'000 + 3'700 * round));
    child_->Kill();
    child_.reset();
    EXPECT_THAT(Echo(*stub, std::string(100'000, 'x')).status, IsOk());
  }
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return budget->bytes_in_use() < 1'000'000; }))
      << budget->bytes_in_use();
}

TEST_F(TwoProcesses, AStoppedServerExpectTheDeadlineAndAnAnswerAfterItGoesOn) {
  StartChild("server");
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  child_->Stop();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Echo(*stub, "x", milliseconds(50)).status.code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  child_->Signal(SIGCONT);
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  EXPECT_EQ(child_->End(), 0);
  child_.reset();
}

TEST_F(TwoProcesses, AStoppedServerDoesNotKeepAChannelFromEnding) {
  StartChild("server");
  auto stub = trial::Trial::NewStub(CreateChannel(target_));
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  child_->Stop();
  const auto start = steady_clock::now();
  stub.reset();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(TwoProcesses, AStoppedServerCannotBeConnectedToAndTheAttemptEnds) {
  StartChild("server");
  child_->Stop();
  ChannelOptions options;
  options.connect_timeout = milliseconds(100);
  auto stub = trial::Trial::NewStub(CreateChannel(target_, options));
  EXPECT_EQ(Echo(*stub, "x").status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(TwoProcesses, AStoppedClientDoesNotKeepTheServerFromEnding) {
  StartServerOnExecutor(2);
  StartChild("client");
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  child_->Stop();
  StopServer(milliseconds(50));
  EXPECT_EQ(service_.cancelled, 1);
}

}  // namespace
}  // namespace verbena

int main(int argc, char** argv) {
  // A child's role is its first argument.
  const std::string role = argc == 3 ? argv[1] : "";
  if (role == "server" || role == "client" || role == "flood" || role == "long_flood") {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (role == "server") return verbena::RunServer(argv[2]);
    if (role == "client") return verbena::RunClient(argv[2]);
    if (role == "long_flood") return verbena::RunLongFlood(argv[2]);
    return verbena::RunFlood(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
