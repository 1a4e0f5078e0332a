// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/local.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "verbena/tools/rpc_bench/ceiling.h"
#include "verbena/tools/rpc_bench/child_process.h"
#include "verbena/tools/rpc_bench/cores.h"
#include "verbena/tools/rpc_bench/measure.h"

namespace verbena::bench {
namespace {

// Starting a process and a server, on a machine that is busy with something else.
constexpr std::chrono::seconds kStartTimeout(10);

absl::StatusOr<ChildProcess> StartServer(const Options& options, const CoreSplit& cores) {
  absl::StatusOr<ChildProcess> server = ChildProcess::StartSelf(
      {"serve", absl::StrCat("--listen=", options.target),
       absl::StrCat("--layer=", ToString(options.layer)),
       absl::StrCat("--poll=", ToString(options.poll)), absl::StrCat("--threads=", options.threads),
       absl::StrCat("--cpu=", absl::StrJoin(cores.server, ","))});
  if (!server.ok()) return server;
  absl::StatusOr<std::string> ready = server->ReadLine(kStartTimeout);
  if (!ready.ok()) {
    return absl::Status(ready.status().code(),
                        absl::StrCat("the server did not start: ", ready.status().message()));
  }
  return server;
}

absl::StatusOr<Ceiling> MeasureCeilingOf(const Options& options, const CoreSplit& cores) {
  if (absl::Status pinned = PinThisThread({cores.client.front()}); !pinned.ok()) return pinned;
  const uint64_t size = options.size_bytes;
  return MeasureCeiling(cores.server.front(), {&size, 1});
}

// One server's life. It has ended when this returns, so that it does not spin beside a ceiling.
absl::StatusOr<Measurement> MeasureOwnServer(const Options& options, const CoreSplit& cores) {
  if (absl::Status pinned = PinThisThread(cores.client); !pinned.ok()) return pinned;
  absl::StatusOr<ChildProcess> server = StartServer(options, cores);
  if (!server.ok()) return server.status();
  return Measure(options);
}

}  // namespace

absl::StatusOr<Result> MeasureLocal(Options options, Conditions* conditions) {
  absl::StatusOr<CoreSplit> cores = SplitCores(AllowedCores(), options.threads);
  if (!cores.ok()) return cores.status();
  // Random, because a process number alone comes again in another container on the same host.
  if (options.target.empty()) {
    options.target = absl::StrCat("shm:rpc_bench.", getpid(), ".", std::random_device()());
  }

  absl::StatusOr<Ceiling> before = MeasureCeilingOf(options, *cores);
  if (!before.ok()) return before.status();
  absl::StatusOr<Measurement> measurement = MeasureOwnServer(options, *cores);
  if (!measurement.ok()) return measurement.status();
  absl::StatusOr<Ceiling> after = MeasureCeilingOf(options, *cores);
  if (!after.ok()) return after.status();

  conditions->device = measurement->device;
  conditions->wire = measurement->wire;
  conditions->cores =
      absl::StrCat(absl::StrJoin(cores->client, ","), " -> ", absl::StrJoin(cores->server, ","));
  auto mean = [](double a, double b) { return (a + b) / 2; };
  CeilingAround around;
  around.rtt_before_us = before->rtt_p50_us;
  around.rtt_after_us = after->rtt_p50_us;
  around.rtt_p99_us = mean(before->rtt_p99_us, after->rtt_p99_us);
  around.ring_messages_per_second =
      mean(before->ring_messages_per_second, after->ring_messages_per_second);
  around.copy_bytes_per_second =
      mean(before->copies[0].bytes_per_second, after->copies[0].bytes_per_second);
  measurement->result.ceiling = around;
  return measurement->result;
}

}  // namespace verbena::bench
