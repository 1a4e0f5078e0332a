// SPDX-License-Identifier: Apache-2.0
//
// Which cores a measurement runs on. Threads: any.

#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace verbena::bench {

// The cores this process may run on, lowest first. Never empty.
std::vector<int> AllowedCores();

// Where the two sides of a measurement run: the client's cores come first. With too few cores for
// `threads` on each side, the threads of one side share.
struct CoreSplit {
  std::vector<int> client;
  std::vector<int> server;
};

// Errors: FAILED_PRECONDITION with fewer than two cores, where two spinning processes would measure
// the scheduler.
absl::StatusOr<CoreSplit> SplitCores(const std::vector<int>& allowed, uint32_t threads);

// Moves the calling thread to these cores, and with it every thread that it starts afterwards.
// Errors: INVALID_ARGUMENT naming a core that this process may not use.
absl::Status PinThisThread(const std::vector<int>& cores);

}  // namespace verbena::bench
