// SPDX-License-Identifier: Apache-2.0
//
// Measures calls in callback form: `concurrency` calls are in flight all the time, each started
// again by its own callback. Closed loop.
//
// Threads: Pass() from one thread, which sleeps meanwhile. A lane is one channel with its calls;
// everything in it is touched on the channel's poller thread only, so nothing is shared.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "verbena/base/cycle_clock.h"
#include "verbena/base/histogram.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tools/rpc_bench/operations.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/tools/rpc_bench/pass.h"

namespace verbena::bench {

template <class Operation>
class CallbackRun {
 public:
  // The calls are spread over the channels evenly.
  CallbackRun(const Options& options, const std::vector<std::shared_ptr<Channel>>& channels);

  // Errors: the first call that failed ends the pass with its status.
  absl::Status Pass(const PassLimits& limits, PassResult* result);

 private:
  struct Lane;
  struct Call {
    Lane* lane;
    std::optional<ClientContext> context;  // A context serves one call.
    typename Operation::Request request;
    typename Operation::Response response;
    uint64_t start_ticks = 0;
  };
  struct alignas(64) Lane {
    const CycleClock clock;
    std::unique_ptr<typename Operation::Service::Stub> stub;
    uint64_t bytes;
    std::counting_semaphore<>* done;
    std::vector<std::unique_ptr<Call>> calls;
    // Of the present pass.
    Histogram latency_ns;
    absl::Status status;
    uint64_t end_ticks = 0;
    uint64_t calls_left = 0;  // To be started.
    size_t in_flight = 0;
  };

  static void Start(Call* call, uint64_t now);
  static void OnDone(Call* call, absl::Status status);

  const CycleClock clock_;
  std::counting_semaphore<> lanes_done_{0};
  std::vector<std::unique_ptr<Lane>> lanes_;
};

template <class Operation>
CallbackRun<Operation>::CallbackRun(const Options& options,
                                    const std::vector<std::shared_ptr<Channel>>& channels) {
  for (const std::shared_ptr<Channel>& channel : channels) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->stub = Operation::Service::NewStub(channel);
    lanes_.back()->bytes = options.size_bytes;
    lanes_.back()->done = &lanes_done_;
  }
  const auto payload = MakePayload<Operation>(*channels[0], options.size_bytes);
  for (uint32_t i = 0; i < options.concurrency; ++i) {
    Lane& lane = *lanes_[i % lanes_.size()];
    lane.calls.push_back(std::make_unique<Call>());
    lane.calls.back()->lane = &lane;
    Fill<Operation>(*channels[i % channels.size()], payload, &lane.calls.back()->request);
  }
}

template <class Operation>
absl::Status CallbackRun<Operation>::Pass(const PassLimits& limits, PassResult* result) {
  const uint32_t lane_count = static_cast<uint32_t>(lanes_.size());
  const uint64_t start_ticks = clock_.ReadTicks();
  // All of a lane is set before its first call starts; from then on it is the poller's.
  for (uint32_t i = 0; i < lane_count; ++i) {
    Lane& lane = *lanes_[i];
    const uint64_t calls_max = limits.CallsOf(i, lane_count);
    lane.latency_ns.Clear();
    lane.status = absl::OkStatus();
    lane.end_ticks = start_ticks + clock_.NsToTicks(static_cast<uint64_t>(limits.seconds * 1e9));
    lane.in_flight = std::min<uint64_t>(lane.calls.size(), calls_max);
    lane.calls_left = calls_max - lane.in_flight;
    if (lane.in_flight == 0) lanes_done_.release();
    const size_t first_calls = lane.in_flight;
    for (size_t c = 0; c < first_calls; ++c) Start(lane.calls[c].get(), clock_.ReadTicks());
  }
  for (uint32_t i = 0; i < lane_count; ++i) lanes_done_.acquire();
  result->seconds = static_cast<double>(clock_.TicksToNs(clock_.ReadTicks() - start_ticks)) / 1e9;
  result->latency_ns.Clear();
  for (const auto& lane : lanes_) {
    if (!lane->status.ok()) return lane->status;
    result->latency_ns.Merge(lane->latency_ns);
  }
  return absl::OkStatus();
}

template <class Operation>
void CallbackRun<Operation>::Start(Call* call, uint64_t now) {
  Lane& lane = *call->lane;
  call->start_ticks = now;
  call->context.emplace();
  Operation::Prepare(lane.bytes, &*call->context);
  // One pointer: std::function holds it without an allocation.
  Operation::Start(*lane.stub, &*call->context, &call->request, &call->response,
                   [call](absl::Status status) { OnDone(call, std::move(status)); });
}

template <class Operation>
void CallbackRun<Operation>::OnDone(Call* call, absl::Status status) {
  Lane& lane = *call->lane;
  const uint64_t now = lane.clock.ReadTicks();
  if (status.ok()) [[likely]] {
    lane.latency_ns.Record(lane.clock.TicksToNs(now - call->start_ticks));
    status = CheckBytesMoved(Operation::BytesMoved(call->response), lane.bytes);
  }
  if (!status.ok() && lane.status.ok()) lane.status = std::move(status);
  if (now < lane.end_ticks && lane.calls_left > 0 && lane.status.ok()) [[likely]] {
    --lane.calls_left;
    Start(call, now);
    return;
  }
  if (--lane.in_flight == 0) lane.done->release();
}

}  // namespace verbena::bench
