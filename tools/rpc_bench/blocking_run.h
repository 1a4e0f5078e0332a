// SPDX-License-Identifier: Apache-2.0
//
// Measures blocking calls: one thread per call in flight. Closed loop, each call starts when the
// one before has ended; or open loop (schedule.h), where it starts at its time.
//
// Threads: Pass() from one thread, which makes the calls itself when one is in flight at a time, so
// that nothing else stands between the clock and the stub.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "verbena/base/cycle_clock.h"
#include "verbena/base/histogram.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tools/rpc_bench/operations.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/tools/rpc_bench/pass.h"
#include "verbena/tools/rpc_bench/schedule.h"

namespace verbena::bench {

template <class Operation>
class BlockingRun {
 public:
  // The callers are spread over the channels.
  BlockingRun(const Options& options, const std::vector<std::shared_ptr<Channel>>& channels);

  // Errors: the first call that failed ends the pass with its status.
  absl::Status Pass(const PassLimits& limits, PassResult* result);

 private:
  struct Caller {
    uint32_t index;
    std::unique_ptr<typename Operation::Service::Stub> stub;
    typename Operation::Request request;
    typename Operation::Response response;
    std::unique_ptr<Histogram> latency_ns = std::make_unique<Histogram>();
    absl::Status status;
    uint64_t calls_max = 0;
  };

  void RunClosed(Caller& caller, uint64_t end_ticks);
  void RunOpen(Caller& caller, const Schedule& schedule, uint64_t end_ticks);
  bool CallOnce(Caller& caller);
  void WaitUntil(uint64_t ticks) const;

  const Options options_;
  const CycleClock clock_;
  std::vector<std::unique_ptr<Caller>> callers_;
};

template <class Operation>
BlockingRun<Operation>::BlockingRun(const Options& options, const std::vector<std::shared_ptr<Channel>>& channels)
    : options_(options) {
  const auto payload = MakePayload<Operation>(*channels[0], options.size_bytes);
  for (uint32_t i = 0; i < options.concurrency; ++i) {
    callers_.push_back(std::make_unique<Caller>());
    callers_[i]->index = i;
    const std::shared_ptr<Channel>& channel = channels[i % channels.size()];
    callers_[i]->stub = Operation::Service::NewStub(channel);
    Fill<Operation>(*channel, payload, &callers_[i]->request);
  }
}

template <class Operation>
absl::Status BlockingRun<Operation>::Pass(const PassLimits& limits, PassResult* result) {
  const uint64_t start_ticks = clock_.ReadTicks();
  const uint64_t end_ticks =
      start_ticks + clock_.NsToTicks(static_cast<uint64_t>(limits.seconds * 1e9));
  const Schedule schedule(start_ticks, clock_.ticks_per_second(),
                          options_.rate > 0 ? options_.rate : 1);
  auto run = [&](Caller& caller) {
    caller.latency_ns->Clear();
    caller.calls_max = limits.CallsOf(caller.index, options_.concurrency);
    if (options_.rate > 0) {
      RunOpen(caller, schedule, end_ticks);
    } else {
      RunClosed(caller, end_ticks);
    }
  };
  if (callers_.size() == 1) {
    run(*callers_[0]);
  } else {
    std::vector<std::thread> threads;
    for (auto& caller : callers_) threads.emplace_back([&] { run(*caller); });
    for (std::thread& thread : threads) thread.join();
  }
  result->seconds = static_cast<double>(clock_.TicksToNs(clock_.ReadTicks() - start_ticks)) / 1e9;
  result->latency_ns.Clear();
  for (const auto& caller : callers_) {
    if (!caller->status.ok()) return caller->status;
    result->latency_ns.Merge(*caller->latency_ns);
  }
  return absl::OkStatus();
}

template <class Operation>
bool BlockingRun<Operation>::CallOnce(Caller& caller) {
  ClientContext context;
  Operation::Prepare(options_.size_bytes, &context);
  caller.status = Operation::Call(*caller.stub, &context, caller.request, &caller.response);
  return caller.status.ok();
}

template <class Operation>
void BlockingRun<Operation>::RunClosed(Caller& caller, uint64_t end_ticks) {
  Histogram& latency_ns = *caller.latency_ns;
  uint64_t end = 0;
  for (uint64_t calls = 0; calls < caller.calls_max && end < end_ticks; ++calls) {
    const uint64_t start = clock_.ReadTicks();
    if (!CallOnce(caller)) return;
    end = clock_.ReadTicks();
    latency_ns.Record(clock_.TicksToNs(end - start));
    caller.status = CheckBytesMoved(Operation::BytesMoved(caller.response), options_.size_bytes);
    if (!caller.status.ok()) return;
  }
}

template <class Operation>
void BlockingRun<Operation>::RunOpen(Caller& caller, const Schedule& schedule, uint64_t end_ticks) {
  for (uint64_t calls = 0; calls < caller.calls_max; ++calls) {
    const uint64_t call = calls * options_.concurrency + caller.index;
    const uint64_t intended = schedule.StartTicksOfCall(call);
    if (intended >= end_ticks) return;
    WaitUntil(intended);
    if (!CallOnce(caller)) return;
    const uint64_t end = clock_.ReadTicks();
    caller.latency_ns->Record(clock_.TicksToNs(schedule.LatencyTicks(call, end)));
    // A server that can't keep up would otherwise hold us until the whole schedule is done.
    if (end >= end_ticks) return;
  }
}

template <class Operation>
void BlockingRun<Operation>::WaitUntil(uint64_t ticks) const {
  // A sleep ends up to 60 us late (timer slack and a wake-up), so the rest is spun.
  constexpr uint64_t kSpinNs = 100'000;
  uint64_t now = clock_.ReadTicks();
  if (now >= ticks) return;
  const uint64_t left_ns = clock_.TicksToNs(ticks - now);
  if (left_ns > 2 * kSpinNs) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns - kSpinNs));
  }
  while (clock_.ReadTicks() < ticks) {
  }
}

}  // namespace verbena::bench
