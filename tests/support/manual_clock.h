// SPDX-License-Identifier: Apache-2.0
//
// A clock that the test moves. Threads: one.

#pragma once

#include <chrono>

#include "verbena/base/clock.h"

namespace verbena {

class ManualClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_; }
  void Advance(std::chrono::nanoseconds by) { now_ns_ += by.count(); }

 private:
  int64_t now_ns_ = 1'000'000'000;
};

}  // namespace verbena
