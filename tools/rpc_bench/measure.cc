// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/measure.h"

#include <chrono>
#include <memory>

#include "verbena/tools/rpc_bench/device.h"
#include "verbena/tools/rpc_bench/measure_endpoint.h"
#include "verbena/tools/rpc_bench/measure_rpc.h"
#include "verbena/tools/rpc_bench/pass.h"
#include "verbena/tools/rpc_bench/percentile.h"
#include "verbena/tools/rpc_bench/run_bound.h"

namespace verbena::bench {
namespace {

// Beyond warm-up and measurement: connecting, filling payloads, the last calls, closing. Long
// enough for a loaded machine, short enough for whoever waits.
constexpr double kRunGraceSeconds = 10;

std::optional<double> Difference(const std::optional<uint64_t>& before,
                                 const std::optional<uint64_t>& after) {
  if (!before.has_value() || !after.has_value()) return std::nullopt;
  return static_cast<double>(*after - *before);
}

std::optional<double> PerCallOf(std::optional<double> total, double calls) {
  if (!total.has_value() || calls == 0) return std::nullopt;
  return *total / calls;
}

}  // namespace

void FillResult(const Options& options, const PassResult& pass, const UsageNow& client_before,
                const UsageNow& client_after, const UsageNow& server_before,
                const UsageNow& server_after, Result* result) {
  const double calls = static_cast<double>(pass.calls());
  result->rtt = {PercentileUs(pass.latency_ns, 50), PercentileUs(pass.latency_ns, 99),
                 PercentileUs(pass.latency_ns, 99.9), PercentileUs(pass.latency_ns, 100)};
  result->calls = pass.calls();
  result->seconds = pass.seconds;
  result->calls_per_second = calls / pass.seconds;
  result->bytes_per_second = result->calls_per_second * static_cast<double>(options.size_bytes);
  auto cpu_us = [&](const UsageNow& before, const UsageNow& after) {
    return PerCallOf(static_cast<double>(after.cpu_ns - before.cpu_ns) / 1000, calls);
  };
  result->cpu_us = {cpu_us(client_before, client_after), cpu_us(server_before, server_after)};
  auto core_share = [&](const UsageNow& before, const UsageNow& after) {
    return static_cast<double>(after.cpu_ns - before.cpu_ns) / 1e9 / pass.seconds;
  };
  result->core_share = {core_share(client_before, client_after),
                        core_share(server_before, server_after)};
  result->allocations = {
      PerCallOf(Difference(client_before.allocations, client_after.allocations), calls),
      PerCallOf(Difference(server_before.allocations, server_after.allocations), calls)};
  // Since the connection was made, and not only of the steady state: there must never be any.
  result->rnr_events = client_after.rnr_events + server_after.rnr_events;
}

absl::StatusOr<Measurement> Measure(const Options& options) {
  RunBound bound(std::chrono::duration<double>(PassLimits::WarmUp(options).seconds +
                                               options.seconds + kRunGraceSeconds));
  absl::StatusOr<std::shared_ptr<Device>> device = OpenDevice(options.target, AddressUse::kConnect);
  if (!device.ok()) return device.status();
  absl::StatusOr<Measurement> measurement = options.layer == Layer::kRpc
                                                ? MeasureRpc(options, **device)
                                                : MeasureEndpoint(options, **device);
  if (!measurement.ok()) return measurement;
  measurement->device = (*device)->capabilities().device;
  measurement->wire = (*device)->capabilities().wire;
  return measurement;
}

}  // namespace verbena::bench
