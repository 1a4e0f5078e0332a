// SPDX-License-Identifier: Apache-2.0
//
// The order of a measurement, the same for every layer: warm-up, a look at both processes, the
// steady state, a second look. Threads: the caller's.

#pragma once

#include <memory>

#include "absl/status/status.h"
#include "verbena/tools/rpc_bench/measure.h"
#include "verbena/tools/rpc_bench/pass.h"
#include "verbena/tools/rpc_bench/usage.h"

namespace verbena::bench {

// `client` has ServerUsage and ClientUsage, `run` has Pass; both may be the same object.
template <class Client, class Run>
absl::Status WarmUpAndMeasure(const Options& options, Client& client, Run& run,
                              Measurement* measurement) {
  auto pass = std::make_unique<PassResult>();
  UsageNow server_before, server_after;
  std::string* const cores = &measurement->server_cores;
  // The first one makes what the server uses again for the later ones.
  absl::Status status = client.ServerUsage(&server_before, cores);
  if (status.ok()) status = run.Pass(PassLimits::WarmUp(options), pass.get());
  if (status.ok()) status = client.ServerUsage(&server_before, cores);
  if (!status.ok()) return status;

  const UsageNow client_before = client.ClientUsage();
  status = run.Pass(PassLimits::Measurement(options), pass.get());
  if (!status.ok()) return status;
  const UsageNow client_after = client.ClientUsage();

  status = client.ServerUsage(&server_after, cores);
  if (!status.ok()) return status;
  FillResult(options, *pass, client_before, client_after, server_before, server_after,
             &measurement->result);
  return absl::OkStatus();
}

}  // namespace verbena::bench
