// SPDX-License-Identifier: Apache-2.0
//
// Many threads, many channels, many calls in flight.

#include <array>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

class Threads : public TrialTest {
 protected:
  // `threads` threads that each make `calls` blocking calls on the stub that `stub(i)` gives.
  template <class StubOf>
  void CallFrom(int threads, int calls, StubOf stub_of) {
    std::vector<std::thread> all;
    std::atomic<int> wrong{0};
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        trial::Trial::Stub& stub = stub_of(i);
        for (int k = 0; k < calls; ++k) {
          const std::string text = absl::StrCat("thread ", i, " call ", k);
          const EchoResult result = Echo(stub, text);
          if (!result.status.ok() || result.text != text) {
            ++wrong;
            ADD_FAILURE() << text << ": " << result.status << " \"" << result.text << "\"";
            return;
          }
        }
      });
    }
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(wrong, 0);
  }
};

// Keeps `kInFlight` calls going, each started by the callback of the one before.
class Pump {
 public:
  Pump(trial::Trial::Stub& stub, int total) : stub_(stub), left_(total) {}

  void Run() {
    for (Slot& slot : slots_) Next(slot);
    EXPECT_TRUE(WaitUntil([this] { return idle_ == static_cast<int>(slots_.size()); }));
    EXPECT_EQ(failed_, 0);
  }

 private:
  struct Slot {
    std::unique_ptr<ClientContext> context;
    trial::Text request;
    trial::Text response;
  };

  void Next(Slot& slot) {
    const int number = left_.fetch_sub(1);
    if (number <= 0) {
      ++idle_;
      return;
    }
    slot.context = std::make_unique<ClientContext>();
    slot.context->set_timeout(milliseconds(20'000));
    slot.request.set_text(std::to_string(number));
    stub_.async()->Echo(slot.context.get(), &slot.request, &slot.response,
                        [this, &slot](absl::Status status) {
                          if (!status.ok() || slot.response.text() != slot.request.text()) {
                            ++failed_;
                            ADD_FAILURE() << status;
                          }
                          Next(slot);
                        });
  }

  trial::Trial::Stub& stub_;
  std::atomic<int> left_;
  std::atomic<int> idle_{0};
  std::atomic<int> failed_{0};
  std::array<Slot, 64> slots_;
};

TEST_F(Threads, EightThreadsShareAChannel) {
  StartServer();
  auto channel = MakeChannel();
  auto stub = trial::Trial::NewStub(channel);
  CallFrom(8, 500, [&](int) -> trial::Trial::Stub& { return *stub; });
  EXPECT_EQ(channel->statistics().calls_ok, 4000u);
  EXPECT_EQ(channel->statistics().connects, 1u);
}

TEST_F(Threads, EightChannelsShareAServerOfTwoPollers) {
  StartServer([](ServerOptions& options) { options.poller_count = 2; });
  std::vector<std::unique_ptr<trial::Trial::Stub>> stubs;
  for (int i = 0; i < 8; ++i) stubs.push_back(MakeStub());
  CallFrom(8, 300, [&](int i) -> trial::Trial::Stub& { return *stubs[i]; });
  EXPECT_EQ(server_->statistics().connections, 8u);
  EXPECT_EQ(server_->statistics().calls_started, 2400u);
}

TEST_F(Threads, ThreadsShareAServerWithAnExecutor) {
  StartServerOnExecutor(3, [](ServerOptions& options) { options.poller_count = 2; });
  std::vector<std::unique_ptr<trial::Trial::Stub>> stubs;
  for (int i = 0; i < 3; ++i) stubs.push_back(MakeStub());
  CallFrom(6, 300, [&](int i) -> trial::Trial::Stub& { return *stubs[i % 3]; });
  // The last answer is out a moment before it is counted.
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().calls_in_flight == 0; }));
}

TEST_F(Threads, SixtyFourCallsInFlightFromCallbacks) {
  StartServer();
  auto stub = MakeStub();
  Pump(*stub, 20'000).Run();
  EXPECT_EQ(server_->statistics().calls_started, 20'000u);
}

TEST_F(Threads, SixtyFourCallsInFlightThroughTheSmallestRing) {
  StartServer([](ServerOptions& options) { options.endpoint.ring_depth = 16; });
  ChannelOptions options;
  options.endpoint.ring_depth = 16;
  auto stub = MakeStub(options);
  Pump(*stub, 10'000).Run();
}

TEST_F(Threads, SixtyFourCallsInFlightToAnExecutor) {
  StartServerOnExecutor(2);
  auto stub = MakeStub();
  Pump(*stub, 5000).Run();
}

TEST_F(Threads, CallbacksAndBlockingCallersShareAChannel) {
  StartServer();
  auto stub = MakeStub();
  std::thread pump([&] { Pump(*stub, 10'000).Run(); });
  CallFrom(3, 500, [&](int) -> trial::Trial::Stub& { return *stub; });
  pump.join();
}

TEST_F(Threads, ThreadsThatComeAndGoLeaveTheChannelUsable) {
  StartServer();
  auto stub = MakeStub();
  for (int round = 0; round < 20; ++round) {
    CallFrom(4, 5, [&](int) -> trial::Trial::Stub& { return *stub; });
  }
  EXPECT_EQ(Echo(*stub, "last").text, "last");
}

TEST_F(Threads, EveryThreadMayMakeAChannelAndDropIt) {
  StartServer();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        auto stub = trial::Trial::NewStub(CreateChannel(target_));
        EXPECT_EQ(Echo(*stub, "x").text, "x");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().connections == 0; }));
  EXPECT_EQ(server_->statistics().connections_accepted, 20u);
}

}  // namespace
}  // namespace verbena
