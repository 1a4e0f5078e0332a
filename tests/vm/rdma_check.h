// SPDX-License-Identifier: Apache-2.0
//
// The fixture of the tests that the conformance suite cannot have: they need root, a kernel to play
// with, or addresses that nobody has. In a VM only (vm_test).

#pragma once

#include <chrono>

#include "verbena/tests/conformance/connected_pair.h"
#include "verbena/tests/support/leak_guard.h"
#include "verbena/tests/support/log_guard.h"
#include "verbena/tests/support/vm_environment.h"
#include "verbena/tests/support/wait.h"
#include "verbena/transport/rdma/factory.h"

namespace verbena {

inline bool IsSoftIwarp() { return Environment("VERBENA_TEST_DEVICE").starts_with("siw"); }

inline const conformance::DeviceUnderTest& ThisDevice() {
  static const conformance::DeviceUnderTest device = {
      .name = IsSoftIwarp() ? "SoftIwarp" : "SoftRoce",
      .create = [] { return CreateRdmaDevice(); },
      .fresh_address = [] { return FreshRdmaAddress(); },
      .absent_is_failure = true,
      .known_differences = {},
      .may_report = {}};
  return device;
}

// Before the fixture's own, which open and start things.
struct Guards {
  LogGuard logs_;
  LeakGuard leaks_;
};

class RdmaCheck : protected Guards, public conformance::DeviceFixture {
 protected:
  const conformance::DeviceUnderTest& subject() const override { return ThisDevice(); }
};

class Stopwatch {
 public:
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace verbena
