// SPDX-License-Identifier: Apache-2.0
//
// The client of --layer=endpoint: one endpoint with `concurrency` frames in flight, each sent again
// when it came back. No calls, no Protobuf.
//
// Threads: one, which polls without ever sleeping. Lifetime: the device outlives it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/base/clock.h"
#include "verbena/base/cycle_clock.h"
#include "verbena/tools/rpc_bench/endpoint_frames.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/tools/rpc_bench/pass.h"
#include "verbena/tools/rpc_bench/usage.h"
#include "verbena/transport/endpoint.h"
#include "verbena/transport/poller.h"

namespace verbena::bench {

class EndpointClient final : private Endpoint::Handler {
 public:
  // Errors: UNAVAILABLE (nobody there), RESOURCE_EXHAUSTED (payload longer than a slot).
  static absl::StatusOr<std::unique_ptr<EndpointClient>> Connect(const Options& options,
                                                                 Device& device);
  ~EndpointClient();
  EndpointClient(const EndpointClient&) = delete;
  EndpointClient& operator=(const EndpointClient&) = delete;

  // Errors: UNAVAILABLE when the connection ends.
  absl::Status Pass(const PassLimits& limits, PassResult* result);
  absl::Status ServerUsage(UsageNow* usage, std::string* cores);
  UsageNow ClientUsage() const;

 private:
  // Call ids: 1 to concurrency are echoes, the next is the question for statistics.
  EndpointClient(const Options& options);
  absl::Status Open(Device& device);
  void OnEvent(ConnectionEvent& event);
  bool SendEcho(uint32_t call_id, uint64_t now);
  void SendOrWait(uint32_t call_id, uint64_t now);
  // Polls until `done()` or the connection is over.
  template <class Done>
  absl::Status PollUntil(Done done);

  Endpoint::Disposition OnFrame(uint32_t slot, std::span<const std::byte> frame) override;
  void OnWritable() override;
  void OnClosed(const absl::Status& why) override;

  const Options options_;
  const SystemClock clock_;
  const CycleClock cycles_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Endpoint> endpoint_;
  absl::Status closed_;  // Why the connection is over; OK while it is not.

  std::vector<std::byte> payload_;     // What is sent, and where what came is put.
  std::vector<uint64_t> start_ticks_;  // By call id.
  std::vector<uint32_t> waiting_;      // Call ids that found no credit.
  PassResult* result_ = nullptr;
  uint64_t end_ticks_ = 0;
  uint64_t calls_left_ = 0;
  uint32_t in_flight_ = 0;
  EndpointStats stats_;
  bool stats_arrived_ = false;
};

}  // namespace verbena::bench
