// SPDX-License-Identifier: Apache-2.0
//
// When the calls of an open loop should start: evenly, whatever became of the calls before. Latency
// is counted from that time and not from when the call did start, so that a server that stalls is
// charged for every call that it kept waiting ("coordinated omission", Gil Tene, "How NOT to
// Measure Latency", 2013).
//
// A value; any thread.

#pragma once

#include <cstdint>

namespace verbena::bench {

class Schedule {
 public:
  // REQUIRES: calls_per_second > 0. Call 0 starts at `start_ticks`.
  Schedule(uint64_t start_ticks, uint64_t ticks_per_second, double calls_per_second)
      : start_ticks_(start_ticks),
        ticks_per_call_q16_(static_cast<uint64_t>(static_cast<double>(ticks_per_second) /
                                                  calls_per_second * 65536.0)) {}

  // Computed from the start and not from the call before, so that rounding does not add up: the
  // error is under 1/65536 tick per call, so under 5 ms after a day at 10 million calls a second.
  uint64_t StartTicksOfCall(uint64_t call) const {
    return start_ticks_ + static_cast<uint64_t>(
                              (static_cast<unsigned __int128>(call) * ticks_per_call_q16_) >> 16);
  }

  // Ticks from when the call should have started until `end_ticks`; 0 for a call that ended before,
  // which two clocks of two cores could make of a very short one.
  uint64_t LatencyTicks(uint64_t call, uint64_t end_ticks) const {
    const uint64_t start = StartTicksOfCall(call);
    return end_ticks > start ? end_ticks - start : 0;
  }

 private:
  uint64_t start_ticks_;
  uint64_t ticks_per_call_q16_;
};

}  // namespace verbena::bench
