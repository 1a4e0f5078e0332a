// SPDX-License-Identifier: Apache-2.0
//
// Deadlines and cancellation, on both sides, with handlers inline and on an executor.

#include <string>

#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

using std::chrono::steady_clock;

class Deadlines : public TrialTest {};

TEST_F(Deadlines, ACallOutlivedByItsInlineHandlerEndsInTime) {
  StartServer();
  auto stub = MakeConnectedStub();
  const auto start = steady_clock::now();
  EXPECT_EQ(Work(*stub, 10'000, milliseconds(50)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  // The handler sees its own deadline pass.
  EXPECT_TRUE(WaitUntil([&] { return service_.cancelled == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().calls_deadline_exceeded == 1; }));
  EXPECT_THAT(Echo(*stub, "next").status, IsOk());
}

TEST_F(Deadlines, ACallOutlivedByItsHandlerOnAnExecutorEndsInTime) {
  StartServerOnExecutor(1);
  auto stub = MakeConnectedStub();
  const auto start = steady_clock::now();
  EXPECT_EQ(Work(*stub, 10'000, milliseconds(50)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(WaitUntil([&] { return service_.cancelled == 1; }));
  // By its own timer or by the client's cancel, whichever was first; that the server's own fires is
  // for tests/protocol/server_executor_test.cc, where the client says nothing.
  EXPECT_LE(server_->statistics().calls_deadline_exceeded, 1u);
  EXPECT_THAT(Echo(*stub, "next").status, IsOk());
}

TEST_F(Deadlines, ACallbackGetsTheDeadlineToo) {
  StartServer();
  auto stub = MakeStub();
  AsyncCall<trial::WorkRequest> call;
  call.request.set_milliseconds(10'000);
  call.context.set_timeout(milliseconds(50));
  stub->async()->Work(&call.context, &call.request, &call.response, call.Done());
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(Deadlines, ACallThatIsFastEnoughIsNotDisturbed) {
  StartServerOnExecutor(2);
  auto stub = MakeStub();
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Work(*stub, 2, milliseconds(10'000)), IsOk());
  EXPECT_EQ(server_->statistics().calls_deadline_exceeded, 0u);
}

TEST_F(Deadlines, ACallWhoseDeadlineHasPassedIsNotSent) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "connects").status, IsOk());
  for (int64_t ms : {0, -1, -1'000'000}) {
    EXPECT_THAT(Echo(*stub, "late", milliseconds(ms)).status,
                Is(absl::StatusCode::kDeadlineExceeded, "it did not run"));
  }
  EXPECT_THAT(Echo(*stub, "in time").status, IsOk());
  EXPECT_EQ(server_->statistics().calls_started, 2u);
}

TEST_F(Deadlines, ADeadlineAppliesWhileTheChannelCannotConnect) {
  StartServer();
  StopServer();
  auto stub = MakeStub();
  EXPECT_FALSE(Echo(*stub, "x", milliseconds(50)).status.ok());
}

TEST_F(Deadlines, TheHandlerKnowsTheDeadlineOfItsCaller) {
  StartServer();
  class Looks final : public trial::Absent::Service {
   public:
    absl::Status Echo(ServerContext* context, const trial::Text*, trial::Text*) override {
      left = std::chrono::duration<double>(context->deadline() - steady_clock::now()).count();
      none = context->deadline() == steady_clock::time_point::max();
      return absl::OkStatus();
    }
    std::atomic<double> left{0};
    std::atomic<bool> none{false};
  } looks;
  const std::string target = FreshTarget();
  ServerBuilder builder;
  builder.AddListeningPort(target).RegisterService(&looks);
  auto server = Must(builder.BuildAndStart());
  auto stub = trial::Absent::NewStub(CreateChannel(target));
  ClientContext with;
  with.set_timeout(std::chrono::seconds(100));
  trial::Text response;
  EXPECT_THAT(stub->Echo(&with, MakeText("x"), &response), IsOk());
  EXPECT_GT(looks.left, 50);
  EXPECT_LE(looks.left, 100.1);
  EXPECT_FALSE(looks.none);
  ClientContext without;
  EXPECT_THAT(stub->Echo(&without, MakeText("x"), &response), IsOk());
  EXPECT_TRUE(looks.none);
}

TEST_F(Deadlines, CallsWaitingForTheExecutorWhoseTimeRunsOutNeverStart) {
  StartServerOnExecutor(1);
  auto stub = MakeStub();
  AsyncCall<trial::WorkRequest> busy;
  busy.request.set_milliseconds(300);
  stub->async()->Work(&busy.context, &busy.request, &busy.response, busy.Done());
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  EXPECT_EQ(Work(*stub, 1, milliseconds(30)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(busy.Await(), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().calls_in_flight == 0; }));
  EXPECT_EQ(service_.cancelled, 0) << "the handler was started for nobody";
}

// ---- Cancellation ----

TEST_F(Deadlines, TryCancelEndsTheCallAndIsSeenByTheHandlerOnAnExecutor) {
  StartServerOnExecutor(1);
  auto stub = MakeStub();
  AsyncCall<trial::WorkRequest> call;
  call.request.set_milliseconds(15'000);
  stub->async()->Work(&call.context, &call.request, &call.response, call.Done());
  ASSERT_TRUE(WaitUntil([&] { return service_.working == 1; }));
  const auto start = steady_clock::now();
  call.context.TryCancel();
  EXPECT_THAT(call.Await(), Is(absl::StatusCode::kCancelled, "the caller cancelled"));
  EXPECT_TRUE(WaitUntil([&] { return service_.cancelled == 1; }));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_THAT(Echo(*stub, "next").status, IsOk());
}

TEST_F(Deadlines, TryCancelFromAnotherThreadEndsABlockingCall) {
  StartServerOnExecutor(1);
  auto stub = MakeStub();
  ClientContext context;
  std::thread canceller([&] {
    EXPECT_TRUE(WaitUntil([&] { return service_.working == 1; }));
    context.TryCancel();
  });
  trial::WorkRequest request;
  request.set_milliseconds(15'000);
  trial::Text response;
  EXPECT_EQ(stub->Work(&context, request, &response).code(), absl::StatusCode::kCancelled);
  canceller.join();
}

TEST_F(Deadlines, ACallCancelledBeforeItStartsIsNotSent) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "connects").status, IsOk());
  ClientContext context;
  context.TryCancel();
  trial::Text response;
  EXPECT_THAT(stub->Echo(&context, MakeText("x"), &response),
              Is(absl::StatusCode::kCancelled, "before it was sent"));
  EXPECT_THAT(Echo(*stub, "next").status, IsOk());
  EXPECT_EQ(server_->statistics().calls_started, 2u);
}

TEST_F(Deadlines, TryCancelAfterTheEndDoesNothing) {
  StartServer();
  auto stub = MakeStub();
  ClientContext context;
  trial::Text response;
  EXPECT_THAT(stub->Echo(&context, MakeText("x"), &response), IsOk());
  context.TryCancel();
  EXPECT_THAT(Echo(*stub, "next").status, IsOk());
}

}  // namespace
}  // namespace verbena
