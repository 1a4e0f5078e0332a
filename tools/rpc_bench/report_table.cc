// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "verbena/tools/rpc_bench/report.h"
#include "verbena/tools/rpc_bench/report_format.h"

namespace verbena::bench {
namespace {

using Lines = std::vector<std::vector<std::string>>;

std::string Heading(const Options& options) {
  const char* what = options.mode == Mode::kUpload     ? "Upload"
                     : options.mode == Mode::kDownload ? "Download"
                     : options.mode == Mode::kBeside   ? "Echo of 64 bytes beside uploads"
                                                       : "Echo";
  std::string flight = options.concurrency == 1
                           ? "one call at a time"
                           : absl::StrCat(options.concurrency, " calls in flight");
  if (options.rate > 0) {
    absl::StrAppend(&flight, ", open loop at ", FormatCount(options.rate),
                    " calls per second, timed from when each should have started");
  }
  return absl::StrCat(what, " of ", FormatBytes(options.size_bytes), ", ", flight,
                      options.codec != Messages::kProtobuf ? ", FlatBuffers" : "",
                      options.layer == Layer::kEndpoint ? ", endpoints without RPC" : "");
}

std::string PerCallText(const std::optional<double>& value, bool is_time) {
  if (!value.has_value()) return "not counted";
  return is_time ? FormatMicroseconds(*value) : absl::StrFormat("%.3g", *value);
}

// The column of the machine's own figures and the ratio, for the line that the ratio is about.
struct MachineColumns {
  std::string rtt, rtt_p99, calls, bytes;
  std::string rtt_ratio, calls_ratio, bytes_ratio;
};

MachineColumns MakeMachineColumns(const Options& options, const Result& result) {
  MachineColumns columns;
  if (!result.ceiling.has_value()) return columns;
  const std::optional<double> ratio = RatioToCeiling(options, result);
  const std::string text = ratio.has_value() ? FormatRatio(*ratio) : "";
  columns.rtt = FormatMicroseconds(result.ceiling->rtt_us());
  columns.rtt_p99 = FormatMicroseconds(result.ceiling->rtt_p99_us);
  switch (options.mode) {
    case Mode::kLatency:
      columns.rtt_ratio = text;
      break;
    case Mode::kThroughput:
      columns.calls = FormatCount(result.ceiling->ring_messages_per_second);
      columns.calls_ratio = text;
      break;
    case Mode::kUpload:
    case Mode::kDownload:
    case Mode::kBeside:
      columns.bytes = FormatBytesPerSecond(result.ceiling->copy_bytes_per_second);
      columns.bytes_ratio = text;
      break;
  }
  return columns;
}

// A busy poller that does not get its core measures the other processes of the machine.
std::string ShareNote(const Options& options, const Result& result) {
  if (options.poll != Poll::kBusy || options.threads != 1 || result.CoresWereOurs()) return "";
  auto percent = [](const std::optional<double>& share) {
    return absl::StrFormat("%.0f %%", 100 * share.value_or(0));
  };
  return absl::StrCat("  THE CORES WERE SHARED: the client had ", percent(result.core_share.client),
                      " of its core and the server ", percent(result.core_share.server),
                      "; run again on a quiet machine.\n");
}

std::string CeilingNote(const Options& options, const Result& result) {
  if (!result.ceiling.has_value()) {
    return "  `rpc_bench local` also measures this machine's own ceiling.\n";
  }
  std::string note =
      "  This machine: a raw 64-byte ping-pong through shared memory, same cores, just before "
      "and\n";
  absl::StrAppend(&note, "  just after (", FormatMicroseconds(result.ceiling->rtt_before_us), ", ",
                  FormatMicroseconds(result.ceiling->rtt_after_us), ")");
  if (options.mode == Mode::kThroughput) {
    absl::StrAppend(&note, "; messages per second, one way, through a ring of 1,024 slots");
  } else if (options.mode != Mode::kLatency) {
    absl::StrAppend(&note, "; memcpy by one thread between two buffers of this size");
  }
  absl::StrAppend(&note, ".\n");
  if (!result.ceiling->IsSteady()) {
    absl::StrAppend(
        &note, "  THE MACHINE CHANGED between the two: this ratio means nothing, run again.\n");
  }
  return note;
}

std::string ConditionsNote(const Options& options, const Conditions& conditions,
                           const Result& result) {
  return absl::StrCat("  Conditions: ", conditions.device, " device, ", conditions.wire, " wire, ",
                      ToString(options.poll), " polling, ", ToString(options.form), " calls, ",
                      options.threads, " thread(s), cores ", conditions.cores, " of ",
                      conditions.cpu_model, ", ", conditions.kernel, ", ",
                      absl::StrFormat("%.2g", result.seconds), " s, ", conditions.build_mode,
                      " build, Verbena ", conditions.verbena_version, ".\n");
}

}  // namespace

std::string ResultTable(const Options& options, const Conditions& conditions,
                        const Result& result) {
  const MachineColumns machine = MakeMachineColumns(options, result);
  const bool has_ceiling = result.ceiling.has_value();
  Lines lines = {
      {"", "", "Verbena", has_ceiling ? "this machine" : "", has_ceiling ? "ratio" : ""},
      {"round trip", "p50", FormatMicroseconds(result.rtt.p50_us), machine.rtt, machine.rtt_ratio},
      {"", "p99", FormatMicroseconds(result.rtt.p99_us), machine.rtt_p99, ""},
      {"", "p99.9", FormatMicroseconds(result.rtt.p999_us)},
      {"calls per second", "", FormatCount(result.calls_per_second), machine.calls,
       machine.calls_ratio},
      {"payload, one way", "", FormatBytesPerSecond(result.bytes_per_second), machine.bytes,
       machine.bytes_ratio},
      {"CPU per call", "client", PerCallText(result.cpu_us.client, true)},
      {"", "server", PerCallText(result.cpu_us.server, true)},
      {"heap allocations per call", "client", PerCallText(result.allocations.client, false)},
      {"", "server", PerCallText(result.allocations.server, false)},
  };
  if (result.alone.has_value()) {
    lines.push_back({"round trip alone", "p50", FormatMicroseconds(result.alone->p50_us)});
    lines.push_back({"", "p99", FormatMicroseconds(result.alone->p99_us)});
    lines.push_back({"p99 beside by alone", "",
                     FormatRatio(result.rtt.p99_us / std::max(result.alone->p99_us, 1e-3))});
  }
  if (result.protobuf.has_value() && result.rebuilt.has_value()) {
    const double protobuf_us = std::max(result.protobuf->p50_us, 1e-3);
    lines.push_back({"with Protobuf", "p50", FormatMicroseconds(result.protobuf->p50_us)});
    lines.push_back({"", "p99", FormatMicroseconds(result.protobuf->p99_us)});
    lines.push_back({"p50 by Protobuf's", "", FormatRatio(result.rtt.p50_us / protobuf_us)});
    lines.push_back({"each message built anew", "p50", FormatMicroseconds(result.rebuilt->p50_us)});
    lines.push_back({"", "p99", FormatMicroseconds(result.rebuilt->p99_us)});
    lines.push_back({"p50 by Protobuf's", "", FormatRatio(result.rebuilt->p50_us / protobuf_us)});
  }
  if (result.protobuf_allocations.value_or(0) > 0) {
    lines.push_back({"", "Protobuf alone", PerCallText(result.protobuf_allocations, false)});
  }
  lines.push_back(
      {"receiver not ready", "events", FormatCount(static_cast<double>(result.rnr_events))});
  return absl::StrCat("\n", Heading(options), "\n\n", AlignColumns(lines, 2), "\n",
                      CeilingNote(options, result), ShareNote(options, result),
                      ConditionsNote(options, conditions, result));
}

std::string CeilingTable(const Conditions& conditions, const Ceiling& ceiling) {
  Lines lines = {
      {"64-byte ping-pong", "round trip p50", FormatMicroseconds(ceiling.rtt_p50_us)},
      {"", "round trip p99", FormatMicroseconds(ceiling.rtt_p99_us)},
      {"64-byte messages", "through a ring, per second",
       FormatCount(ceiling.ring_messages_per_second)},
  };
  for (const CopyRate& copy : ceiling.copies) {
    lines.push_back({&copy == &ceiling.copies.front() ? "memcpy, one thread" : "",
                     FormatBytes(copy.bytes), FormatBytesPerSecond(copy.bytes_per_second)});
  }
  return absl::StrCat("\nWhat this machine can do between two processes, without any library\n\n",
                      AlignColumns(lines, 2), "\n  Conditions: cores ", conditions.cores, " of ",
                      conditions.cpu_model, ", ", conditions.kernel, ", ", conditions.build_mode,
                      " build, Verbena ", conditions.verbena_version, ".\n");
}

}  // namespace verbena::bench
