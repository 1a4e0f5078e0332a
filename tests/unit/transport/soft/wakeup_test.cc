// SPDX-License-Identifier: Apache-2.0
//
// No wake-up is lost: a ping-pong between two processes that sleep for every message, with both
// kinds of barrier and with one process of each kind.

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <random>

#include "glog/logging.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/wait.h"
#include "verbena/tests/unit/transport/soft/end.h"

namespace verbena::soft {
namespace {

using std::chrono::steady_clock;

constexpr int kRoundTrips = 100'000;
// A slow machine does fewer.
constexpr std::chrono::seconds kTimeLimit{30};
// Nothing takes so long but a wake-up that was lost.
constexpr int kLostAfterMs = 5000;

// What the two processes tell each other beside the device.
struct Shared {
  std::atomic<bool> stop;
  std::atomic<int> lost;
  std::atomic<int> sleeps;
};

class Sleeper {
 public:
  Sleeper(End& end, Shared* shared, bool solicited)
      : end_(end), shared_(shared), solicited_(solicited) {
    for (uint64_t i = 0; i < 16; ++i) end_.PostRecv(i, 64 * i, 64);
  }

  // The next receive. False: the other one has stopped or a wake-up was lost.
  bool Receive() {
    WorkCompletion completion;
    for (;;) {
      // A different moment to go to sleep each time.
      for (uint32_t spins = random_() % 64; spins > 0; --spins) {
        if (Poll(&completion)) return true;
      }
      Must(end_.queue->Arm(solicited_));
      if (Poll(&completion)) return true;
      if (shared_->stop.load()) return false;
      shared_->sleeps.fetch_add(1, std::memory_order_relaxed);
      pollfd waiting{end_.channel->fd(), POLLIN, 0};
      const int ready = poll(&waiting, 1, kLostAfterMs);
      end_.channel->Drain();
      if (ready == 0 && !shared_->stop.load()) {
        if (Poll(&completion)) shared_->lost.fetch_add(1);
        return false;
      }
    }
  }

  void Send() { end_.Send(1, 4096, 32, kSendSolicited); }

 private:
  bool Poll(WorkCompletion* completion) {
    if (end_.queue->Poll({completion, 1}) == 0) return false;
    if (shared_->stop.load()) return false;  // The other one left: a flush.
    CHECK(completion->status == CompletionStatus::kSuccess)
        << CompletionStatusName(completion->status).data();
    end_.PostRecv(completion->wr_id, 64 * completion->wr_id, 64);
    return true;
  }

  End& end_;
  Shared* const shared_;
  const bool solicited_;
  std::minstd_rand random_{1};
};

struct Mode {
  const char* name;
  bool client_fences;
  bool server_fences;
  bool solicited;
};

class Wakeup : public testing::TestWithParam<Mode> {};

TEST_P(Wakeup, NoneIsLost) {
  const Mode mode = GetParam();
  const std::string name = FreshName();
  Shared* shared = SharedWithChildren<Shared>();
  Child child([&] {
    End end({.fence = mode.client_fences, .channel = true});
    Sleeper sleeper(end, shared, mode.solicited);
    end.Connect(name);
    while (sleeper.Receive()) sleeper.Send();
    while (!shared->stop.load()) poll(nullptr, 0, 1);
    return 0;
  });
  End end({.fence = mode.server_fences, .channel = true});
  Sleeper sleeper(end, shared, mode.solicited);
  end.Listen(name);
  end.Accept();
  const auto until = steady_clock::now() + kTimeLimit;
  int done = 0;
  for (; done < kRoundTrips && steady_clock::now() < until; ++done) {
    sleeper.Send();
    if (!sleeper.Receive()) break;
  }
  EXPECT_TRUE(done == kRoundTrips || steady_clock::now() >= until) << done << " round trips";
  EXPECT_EQ(shared->lost.load(), 0);
  std::cout << done << " round trips with " << shared->sleeps.load() << " sleeps\n";
  EXPECT_GT(done, 100);
  EXPECT_GT(shared->sleeps.load(), 0);
  shared->stop.store(true);
  end.pair.reset();
  EXPECT_EQ(child.Join(), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, Wakeup,
                         testing::Values(Mode{"Membarrier", false, false, false},
                                         Mode{"Fences", true, true, false},
                                         Mode{"ClientFences", true, false, false},
                                         Mode{"ServerFences", false, true, false},
                                         Mode{"Solicited", false, false, true}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace verbena::soft
