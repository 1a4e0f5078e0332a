// SPDX-License-Identifier: Apache-2.0
//
// Every way of waiting, on either side: no wake-up is lost. A lost one shows as a call that takes
// its whole deadline.

#include <string>
#include <thread>
#include <tuple>

#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

using Mode = PollOptions::Mode;

std::string ModeName(Mode mode) {
  return mode == Mode::kBusy ? "Busy" : mode == Mode::kEvent ? "Event" : "Adaptive";
}

class PollModes : public TrialTest,
                  public testing::WithParamInterface<std::tuple<Mode, Mode>> {
 protected:
  void Start(bool on_executor) {
    const auto change = [](ServerOptions& options) {
      options.poll.mode = std::get<0>(GetParam());
    };
    on_executor ? StartServerOnExecutor(2, change) : StartServer(change);
    ChannelOptions options;
    options.poll.mode = std::get<1>(GetParam());
    stub_ = MakeStub(options);
  }
  std::unique_ptr<trial::Trial::Stub> stub_;
};

INSTANTIATE_TEST_SUITE_P(
    ServerAndClient, PollModes,
    testing::Combine(testing::Values(Mode::kAdaptive, Mode::kBusy, Mode::kEvent),
                     testing::Values(Mode::kAdaptive, Mode::kBusy, Mode::kEvent)),
    [](const auto& info) {
      return ModeName(std::get<0>(info.param)) + "ServerAnd" + ModeName(std::get<1>(info.param)) +
             "Client";
    });

TEST_P(PollModes, BlockingCallsAreAnswered) {
  Start(/*on_executor=*/false);
  for (int i = 0; i < 300; ++i) ASSERT_THAT(Echo(*stub_, "x").status, IsOk()) << i;
}

TEST_P(PollModes, BlockingCallsAreAnsweredAfterPausesOfAnyLength) {
  Start(/*on_executor=*/false);
  for (int i = 0; i < 60; ++i) {
    ASSERT_THAT(Echo(*stub_, "x").status, IsOk()) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(i * i));
  }
}

TEST_P(PollModes, CallbacksComeAfterPausesOfAnyLength) {
  Start(/*on_executor=*/false);
  for (int i = 0; i < 60; ++i) {
    AsyncCall<trial::Text> call;
    call.context.set_timeout(std::chrono::seconds(15));
    stub_->async()->Echo(&call.context, &call.request, &call.response, call.Done());
    ASSERT_THAT(call.Await(), IsOk()) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(i * i));
  }
}

TEST_P(PollModes, CallsOnAnExecutorWakeTheirPoller) {
  Start(/*on_executor=*/true);
  for (int i = 0; i < 30; ++i) ASSERT_THAT(Work(*stub_, i % 3), IsOk()) << i;
}

TEST_P(PollModes, TwoThreadsTakeTurns) {
  Start(/*on_executor=*/false);
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) ASSERT_THAT(Echo(*stub_, "other").status, IsOk()) << i;
  });
  for (int i = 0; i < 200; ++i) ASSERT_THAT(Echo(*stub_, "x").status, IsOk()) << i;
  other.join();
}

TEST_P(PollModes, ADeadlineEndsACallThatNobodyDrives) {
  Start(/*on_executor=*/true);
  AsyncCall<trial::WorkRequest> call;
  call.request.set_milliseconds(15'000);
  call.context.set_timeout(milliseconds(30));
  stub_->async()->Work(&call.context, &call.request, &call.response, call.Done());
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace verbena
