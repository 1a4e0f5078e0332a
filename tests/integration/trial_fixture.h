// SPDX-License-Identifier: Apache-2.0
//
// A server with a TrialService in this process, and channels to it. When a test ends, nothing is
// left: no connection, no descriptor, no thread, no warning, no receiver that was not ready.

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/trial.verbena.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tests/support/thread_executor.h"
#include "verbena/tests/integration/trial_service.h"
#include "verbena/tests/support/leak_guard.h"
#include "verbena/tests/support/log_guard.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/status_matchers.h"
#include "verbena/tests/support/wait.h"

namespace verbena {

using std::chrono::milliseconds;

// An address that no other test, and no other run, uses.
std::string FreshTarget();

inline trial::Text MakeText(std::string text) {
  trial::Text message;
  message.set_text(std::move(text));
  return message;
}

// One blocking call of Echo.
struct EchoResult {
  absl::Status status;
  std::string text;
};
EchoResult Echo(trial::Trial::Stub& stub, const std::string& text,
                milliseconds timeout = milliseconds(20'000));
absl::Status Work(trial::Trial::Stub& stub, uint32_t work_ms,
                  milliseconds timeout = milliseconds(20'000));

// A call in the callback form. Must outlive its end.
template <class Request, class Response = trial::Text>
class AsyncCall {
 public:
  Request request;
  Response response;
  ClientContext context;

  DoneCallback Done() {
    return [this](absl::Status status) {
      EXPECT_FALSE(done()) << "ended twice";
      status_ = std::move(status);
      done_.store(true);
    };
  }
  bool done() const { return done_.load(); }
  const absl::Status& Await() {
    EXPECT_TRUE(WaitUntil([this] { return done(); })) << "a call never ended";
    return status_;
  }

 private:
  absl::Status status_ = absl::UnknownError("not ended");
  std::atomic<bool> done_{false};
};

class TrialTest : public testing::Test {
 protected:
  using Change = std::function<void(ServerOptions&)>;

  TrialTest() : target_(FreshTarget()) {}
  ~TrialTest() override { TearDownAll(); }

  void StartServer(const Change& change = [](ServerOptions&) {});
  // Calls run on `threads` threads.
  void StartServerOnExecutor(int threads, const Change& change = [](ServerOptions&) {});
  // Shuts down within a bound, and looks at what must be zero.
  void StopServer(milliseconds grace = milliseconds(1000));
  // The fixture keeps the channel until the test is over; a test of a channel's end makes its own.
  std::shared_ptr<Channel> MakeChannel(ChannelOptions options = {});
  std::unique_ptr<trial::Trial::Stub> MakeStub(ChannelOptions options = {}) {
    return trial::Trial::NewStub(MakeChannel(std::move(options)));
  }
  // For tests with deadlines that are shorter than making a connection may take.
  std::unique_ptr<trial::Trial::Stub> MakeConnectedStub();
  void TearDownAll();
  // For fixtures that have services of their own, whose destructors call TearDownAll.
  virtual void RegisterMore(ServerBuilder&) {}

  LogGuard logs_;
  LeakGuard leaks_;
  const std::string target_;
  TrialService service_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<Server> server_;
  std::vector<std::shared_ptr<Channel>> channels_;
};

}  // namespace verbena
