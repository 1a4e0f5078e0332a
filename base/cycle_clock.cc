// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/cycle_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace verbena {
namespace {

constexpr uint64_t kOneQ32 = uint64_t{1} << 32;

#if defined(__x86_64__)

// "Invariant TSC": leaf 8000_0007h, EDX bit 8 (Intel SDM vol. 3, 18.17.1; AMD APM vol. 3, E.4.6).
bool TscIsInvariant() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1u << 8)) != 0;
}

struct Reading {
  int64_t ns;
  uint64_t ticks;
};

// Both clocks at one moment. The thread can be preempted between the two reads, so the tightest of
// several tries counts.
Reading ReadBoth() {
  constexpr int kTries = 16;
  SystemClock clock;
  Reading best = {};
  uint64_t best_gap = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    uint64_t before = __rdtsc();
    int64_t ns = clock.NowNs();
    uint64_t gap = __rdtsc() - before;
    if (gap < best_gap) {
      best_gap = gap;
      best = {ns, before + gap / 2};
    }
  }
  return best;
}

#endif

}  // namespace

CycleClock::CycleClock() {
  static const Rate rate = MeasureRate();
  rate_ = rate;
}

CycleClock::Rate CycleClock::MeasureRate() {
#if defined(__x86_64__)
  if (TscIsInvariant()) {
    // A reading is good to about 50 ns, so 10 ms gives about 1 part in 10^5.
    constexpr int64_t kWindowNs = 10'000'000;
    SystemClock clock;
    Reading start = ReadBoth();
    while (clock.NowNs() - start.ns < kWindowNs) {
    }
    Reading end = ReadBoth();
    uint64_t ns = static_cast<uint64_t>(end.ns - start.ns);
    uint64_t ticks = end.ticks - start.ticks;
    // A counter that a hypervisor stops or sets back is of no use. 100 MHz is far below any real
    // one.
    if (end.ticks > start.ticks && ticks > ns / 10) {
      auto ratio_q32 = [](uint64_t a, uint64_t b) {
        return static_cast<uint64_t>((static_cast<unsigned __int128>(a) << 32) / b);
      };
      return {true, ratio_q32(ns, ticks), ratio_q32(ticks, ns)};
    }
  }
#endif
  return {false, kOneQ32, kOneQ32};
}

}  // namespace verbena
