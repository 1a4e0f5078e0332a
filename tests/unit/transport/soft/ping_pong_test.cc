// SPDX-License-Identifier: Apache-2.0
//
// 64 bytes there and back through the device, beside the same through bare shared memory, in turn
// and in the same two processes: the ratio tells what the device costs, whatever the machine.
// The bound is loose, since a busy machine disturbs even the best of many rounds; the number that
// is printed is what to look at.

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>
#include <thread>
#include <vector>

#include "glog/logging.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/unit/transport/soft/end.h"

namespace verbena::soft {
namespace {

using std::chrono::steady_clock;

constexpr uint32_t kBytes = 64;
constexpr int kRounds = 10;
constexpr int kRoundTrips = 20'000;
constexpr double kRatioMax = 2.5;
constexpr uint32_t kRawSlots = 128;

struct alignas(128) RawMessage {
  std::atomic<uint32_t> sequence;
  std::byte data[kBytes];
};
struct RawRings {
  RawMessage there[kRawSlots];
  RawMessage back[kRawSlots];
};

void Pin(unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % std::thread::hardware_concurrency(), &set);
  PCHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

class RawSide {
 public:
  RawSide(RawMessage* out, RawMessage* in) : out_(out), in_(in) {}
  void Send() {
    RawMessage& message = out_[sent_ % kRawSlots];
    std::memcpy(message.data, buffer_, kBytes);
    message.sequence.store(++sent_, std::memory_order_release);
  }
  void Receive() {
    RawMessage& message = in_[received_ % kRawSlots];
    while (message.sequence.load(std::memory_order_acquire) != received_ + 1) {
    }
    std::memcpy(buffer_, message.data, kBytes);
    ++received_;
  }

 private:
  RawMessage* const out_;
  RawMessage* const in_;
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
  std::byte buffer_[kBytes] = {};
};

class DeviceSide {
 public:
  explicit DeviceSide(End& end) : end_(end) {
    for (uint64_t i = 0; i < 64; ++i) end_.PostRecv(i, 4096 * i, 4096);
  }
  void Send() { end_.Send(1, kSource, kBytes, 0); }
  void Receive() {
    WorkCompletion completion;
    while (end_.queue->Poll({&completion, 1}) == 0) {
    }
    CHECK(completion.status == CompletionStatus::kSuccess);
    parts_[used_] = {end_.region->address() + 4096 * completion.wr_id, 4096,
                     end_.region->local_key()};
    again_[used_] = {completion.wr_id, {&parts_[used_], 1}};
    if (++used_ == kBatch) {
      Must(end_.pair->PostRecv(again_));
      used_ = 0;
    }
  }

 private:
  static constexpr size_t kSource = 4096 * 64;
  static constexpr size_t kBatch = 16;
  End& end_;
  size_t used_ = 0;
  ScatterGatherEntry parts_[kBatch];
  RecvWorkRequest again_[kBatch];
};

template <typename Side>
double RoundTripNs(Side& side, bool first) {
  const auto start = steady_clock::now();
  for (int i = 0; i < kRoundTrips; ++i) {
    if (first) side.Send();
    side.Receive();
    if (!first) side.Send();
  }
  return std::chrono::duration<double, std::nano>(steady_clock::now() - start).count() /
         kRoundTrips;
}

TEST(PingPong, CostsLittleMoreThanTheCacheLinesItMoves) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two cores";
  const std::string name = FreshName();
  auto* raw = SharedWithChildren<RawRings>();
  Child child([&] {
    End end;
    Pin(1);
    RawSide raw_side(raw->back, raw->there);
    DeviceSide device_side(end);
    end.Connect(name);
    for (int i = 0; i < kRounds; ++i) {
      RoundTripNs(raw_side, false);
      RoundTripNs(device_side, false);
    }
    return 0;
  });
  End end;
  Pin(0);
  RawSide raw_side(raw->there, raw->back);
  DeviceSide device_side(end);
  end.Listen(name);
  end.Accept();
  double raw_ns = 1e9;
  double device_ns = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    raw_ns = std::min(raw_ns, RoundTripNs(raw_side, true));
    device_ns = std::min(device_ns, RoundTripNs(device_side, true));
  }
  std::cout << kBytes << " bytes, round trip: raw " << raw_ns << " ns, device " << device_ns
            << " ns, ratio " << device_ns / raw_ns << "\n";
  EXPECT_LT(device_ns / raw_ns, kRatioMax);
  EXPECT_EQ(child.Join(), 0);
}

}  // namespace
}  // namespace verbena::soft
