// SPDX-License-Identifier: Apache-2.0
//
// The ceiling: what two processes on two cores of this machine can do without any library between
// them. Every ratio that rpc_bench prints is against this, taken within the same minute, because
// the cores of a virtual machine are sometimes near each other and sometimes far apart.
//
//   ping-pong  64 bytes written to shared memory, read and written back; both sides spin
//   ring       64-byte messages one after the other through 1,024 slots, one writer, one reader
//   copy       memcpy by one thread between two shared buffers whose pages are all present
//
// Threads: the caller's, which must be pinned to the first core already.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace verbena::bench {

struct CopyRate {
  uint64_t bytes = 0;
  double bytes_per_second = 0;
};

struct Ceiling {
  double rtt_p50_us = 0;
  double rtt_p99_us = 0;
  double ring_messages_per_second = 0;
  std::vector<CopyRate> copies;  // As `copy_sizes`.
};

// Takes 0.2 s plus 0.1 s per copy size (1 GiB: 2 s). Errors: those of starting a
// process and of mapping memory; UNAVAILABLE when the partner stops answering.
absl::StatusOr<Ceiling> MeasureCeiling(int partner_core, std::span<const uint64_t> copy_sizes);

// One size. Needs twice as much memory; RESOURCE_EXHAUSTED when this host has not that much free.
absl::StatusOr<CopyRate> MeasureCopyRate(uint64_t bytes);

// The other process: answers on the segment at ChildProcess::kInheritedFd until it is killed.
absl::Status RunCeilingPartner();

}  // namespace verbena::bench
