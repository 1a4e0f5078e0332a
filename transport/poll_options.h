// SPDX-License-Identifier: Apache-2.0
//
// How a thread waits for its completion queue: latency against CPU time. A value.

#pragma once

#include <chrono>

namespace verbena {

struct PollOptions {
  enum class Mode {
    kAdaptive,  // Spin for `spin`, then sleep on the completion channel.
    kBusy,      // Never sleep: no system call, one core per poller.
    kEvent,     // Sleep as soon as there is nothing to do.
  };
  Mode mode = Mode::kAdaptive;
  // A wake-up costs 5 to 50 us; spinning about that long costs at most twice the best choice
  // (the ski-rental argument), and an idle poller costs nothing.
  std::chrono::microseconds spin{50};
};

}  // namespace verbena
