// SPDX-License-Identifier: Apache-2.0
//
// CycleClock: short intervals, measured with the CPU's time stamp counter. A reading costs some 10
// ns less than SystemClock's; use it where that matters (spin bounds, per-operation statistics)
// and SystemClock elsewhere.
//
// Threads: any. Ticks of different cores compare, as the counter is used only where the CPU says
// that it is invariant (constant rate, running in every sleep state, hence synchronised by the
// kernel). Elsewhere a tick is a nanosecond of CLOCK_MONOTONIC.
//
// The rate is measured once per process, over about 10 ms and to about 1 part in 10^5. So ticks
// are for intervals of seconds at most, not for deadlines hours away.

#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "verbena/base/clock.h"

namespace verbena {

class CycleClock {
 public:
  // The first CycleClock of the process takes about 10 ms to measure the rate; later ones are free.
  CycleClock();

  // A count that grows by ticks_per_second() per second. Not a serialising instruction: the CPU may
  // move it by a few neighbouring instructions.
  uint64_t ReadTicks() const {
#if defined(__x86_64__)
    if (rate_.uses_tsc) return __rdtsc();
#endif
    return static_cast<uint64_t>(SystemClock().NowNs());
  }

  // A difference of two ReadTicks(), in nanoseconds, rounded down. Good for any 64-bit difference
  // whose result fits.
  uint64_t TicksToNs(uint64_t ticks) const { return Scale(ticks, rate_.ns_per_tick_q32); }

  // The other way, rounded down: how many ticks a spin bound lasts.
  uint64_t NsToTicks(uint64_t ns) const { return Scale(ns, rate_.ticks_per_ns_q32); }

  uint64_t ticks_per_second() const { return NsToTicks(1'000'000'000); }

  // False where ticks are CLOCK_MONOTONIC's nanoseconds.
  bool uses_tsc() const { return rate_.uses_tsc; }

 private:
  // Factors are fixed point with 32 fraction bits: at 3 GHz that resolves 1 part in 10^9.
  struct Rate {
    bool uses_tsc;
    uint64_t ns_per_tick_q32;
    uint64_t ticks_per_ns_q32;
  };

  static uint64_t Scale(uint64_t value, uint64_t factor_q32) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(value) * factor_q32) >> 32);
  }

  static Rate MeasureRate();

  Rate rate_;
};

}  // namespace verbena
