// SPDX-License-Identifier: Apache-2.0
//
// What a process has used since it started. Taken before and after a measurement, on both sides;
// the difference, by the number of calls, is what a call costs. Threads: any.

#pragma once

#include <cstdint>
#include <optional>

namespace verbena::bench {

struct UsageNow {
  uint64_t cpu_ns = 0;  // All threads, user and system.
  std::optional<uint64_t> allocations;
  uint64_t rnr_events = 0;  // For the caller to add, who knows the connections.
};

// One system call.
UsageNow ProcessUsage();

}  // namespace verbena::bench
