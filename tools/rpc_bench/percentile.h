// SPDX-License-Identifier: Apache-2.0
//
// A percentile finer than the counter that measured it. The time stamp counter of some CPUs moves
// in steps of 10 ns and more, so a round trip of 0.113 us is recorded as 110 ns in seven cases of
// ten and as 120 ns in three. A ratio of two such medians would be 10 % off.
//
// Pure; any thread.

#pragma once

#include "verbena/base/histogram.h"

namespace verbena::bench {

// Takes every recorded value as anything up to half way to the next recorded one on either side,
// evenly, and interpolates; where the next one is far (the tail), as exactly what it is. In
// microseconds, of a histogram of nanoseconds; 0 when nothing was recorded.
double PercentileUs(const Histogram& latency_ns, double percent);

}  // namespace verbena::bench
