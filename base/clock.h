// SPDX-License-Identifier: Apache-2.0
//
// Clock: where time comes from. Code that waits, times out or measures takes a `const Clock&`, so
// that the simulator can give it virtual time.
//
// Threads: NowNs() may be called from any thread. Lifetime: whoever takes a Clock keeps a
// reference; the clock outlives it.

#pragma once

#include <time.h>

#include <cstdint>

namespace verbena {

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since an origin that is fixed for this clock's life; never decreases, never
  // negative. Only differences mean something, and only between readings of the same clock.
  virtual int64_t NowNs() const = 0;
};

// CLOCK_MONOTONIC: it does not jump when someone sets the time of day. Stateless, so every
// SystemClock of a host reads the same time, in all processes. One reading costs about 20-30 ns
// (vDSO, no system call).
class SystemClock final : public Clock {
 public:
  int64_t NowNs() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);  // Can't fail for this clock id.
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

}  // namespace verbena
