// SPDX-License-Identifier: Apache-2.0
//
// rpc_bench: see Usage(). Exit codes: 0, 1 for what went wrong while it ran, 2 for a command line
// that makes no sense. What went wrong is one line on standard error: code and message.

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "verbena/tools/rpc_bench/ceiling.h"
#include "verbena/tools/rpc_bench/child_process.h"
#include "verbena/tools/rpc_bench/conditions.h"
#include "verbena/tools/rpc_bench/cores.h"
#include "verbena/tools/rpc_bench/local.h"
#include "verbena/tools/rpc_bench/measure.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/tools/rpc_bench/report.h"
#include "verbena/tools/rpc_bench/serve.h"

namespace verbena::bench {
namespace {

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void PrintResult(const Options& options, const Conditions& conditions, const Result& result) {
  Print(options.json ? ResultJson(options, conditions, result)
                     : ResultTable(options, conditions, result));
}

absl::Status RunCommand(const Options& options) {
  Conditions conditions = GatherConditions();
  if (absl::Status pinned = PinThisThread(options.cpus); !pinned.ok()) return pinned;
  conditions.cores = absl::StrJoin(AllowedCores(), ",");
  absl::StatusOr<Measurement> measurement = Measure(options);
  if (!measurement.ok()) return measurement.status();
  conditions.device = measurement->device;
  conditions.wire = measurement->wire;
  absl::StrAppend(&conditions.cores, " -> ", measurement->server_cores);
  PrintResult(options, conditions, measurement->result);
  return absl::OkStatus();
}

absl::Status LocalCommand(const Options& options) {
  Conditions conditions = GatherConditions();
  absl::StatusOr<Result> result = MeasureLocal(options, &conditions);
  if (!result.ok()) return result.status();
  PrintResult(options, conditions, *result);
  return absl::OkStatus();
}

absl::Status CeilingCommand(const Options& options) {
  constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
  constexpr std::array kCopySizes = {4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB,
                                     4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB, 1024 * kMiB};
  Conditions conditions = GatherConditions();
  absl::StatusOr<CoreSplit> cores = SplitCores(AllowedCores(), 1);
  if (!cores.ok()) return cores.status();
  if (absl::Status pinned = PinThisThread(cores->client); !pinned.ok()) return pinned;
  conditions.cores = absl::StrCat(cores->client[0], " -> ", cores->server[0]);
  absl::StatusOr<Ceiling> ceiling = MeasureCeiling(cores->server[0], kCopySizes);
  if (!ceiling.ok()) return ceiling.status();
  Print(options.json ? CeilingJson(conditions, *ceiling) : CeilingTable(conditions, *ceiling));
  return absl::OkStatus();
}

absl::Status CeilingPartnerCommand(const Options& options) {
  if (absl::Status owned = EndWithOwner(options.owner_pid); !owned.ok()) return owned;
  if (absl::Status pinned = PinThisThread(options.cpus); !pinned.ok()) return pinned;
  return RunCeilingPartner();
}

absl::Status Dispatch(const Options& options) {
  switch (options.command) {
    case Command::kHelp:
      Print(Usage());
      return absl::OkStatus();
    case Command::kServe:
      return Serve(options);
    case Command::kRun:
      return RunCommand(options);
    case Command::kLocal:
      return LocalCommand(options);
    case Command::kCeiling:
      return CeilingCommand(options);
    case Command::kCeilingPartner:
      return CeilingPartnerCommand(options);
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "rpc_bench: %s\n", status.ToString().c_str());
  return exit_code;
}

int Main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  absl::StatusOr<Options> options = ParseOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) return Fail(options.status(), 2);
  if (absl::Status done = Dispatch(*options); !done.ok()) return Fail(done, 1);
  return 0;
}

}  // namespace
}  // namespace verbena::bench

int main(int argc, char** argv) { return verbena::bench::Main(argc, argv); }
