// SPDX-License-Identifier: Apache-2.0
//
// What a measurement found, before anyone prints it. A value.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "verbena/tools/rpc_bench/options.h"

namespace verbena::bench {

// What must be told beside a figure for it to mean something.
struct Conditions {
  std::string device = "none";
  std::string wire = "none";
  std::string cores;  // "0 -> 1": the client's, the server's.
  std::string cpu_model;
  std::string kernel;
  std::string build_mode;       // "opt" or "dbg", with the sanitizer if there is one.
  std::string verbena_version;  // A commit, with "-dirty"; "unknown" outside a checkout.
  std::string compiler;
  std::string protobuf_version;
  std::string flatbuffers_version;
};

struct Latency {
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double max_us = 0;
};

// Of each process with all its threads, mostly per call. Empty: could not be counted.
struct PerProcess {
  std::optional<double> client;
  std::optional<double> server;
};

// The ceiling around one run: taken just before and just after, on the same cores.
struct CeilingAround {
  double rtt_before_us = 0;
  double rtt_after_us = 0;
  double rtt_p99_us = 0;
  double ring_messages_per_second = 0;
  double copy_bytes_per_second = 0;  // Copies of the run's size.

  double rtt_us() const { return (rtt_before_us + rtt_after_us) / 2; }
  // The hypervisor moves cores; a ratio across such a move means nothing.
  bool IsSteady() const;
};

struct Result {
  Latency rtt;
  uint64_t calls = 0;
  double seconds = 0;  // As measured.
  double calls_per_second = 0;
  double bytes_per_second = 0;  // Payload, one way.
  PerProcess cpu_us;
  PerProcess
      core_share;  // CPU time by wall time: 1 for one thread that spins on a core of its own.
  PerProcess allocations;
  std::optional<Latency> alone;  // Beside: of the same calls without anything beside them.
  std::optional<Latency> protobuf;  // Both: of the same calls with Protobuf,
  std::optional<Latency> rebuilt;   // and of such that build each of their messages.
  std::optional<double> protobuf_allocations;  // Of one side's serialising and parsing alone.
  uint64_t rnr_events = 0;
  std::optional<CeilingAround> ceiling;

  // Of two busy pollers: whether other processes left them their cores.
  bool CoresWereOurs() const;
};

// Latency: the p50 over the ping-pong's. Throughput: calls per second over the ring's messages per
// second. Upload, download and beside: bytes per second over the copy's. Empty without a ceiling.
std::optional<double> RatioToCeiling(const Options& options, const Result& result);

}  // namespace verbena::bench
