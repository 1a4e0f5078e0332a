// SPDX-License-Identifier: Apache-2.0
//
// LeakGuard: a test that leaves open descriptors or running threads behind fails.
//
// Lifetime: a member of the fixture, declared before everything that opens or starts something.

#pragma once

#include <cstddef>

namespace verbena {

// Open descriptors and threads of this process, counted in /proc/self.
size_t CountDescriptors();
size_t CountThreads();

class LeakGuard {
 public:
  LeakGuard();
  // Gives threads that are ending a bounded time, then compares.
  ~LeakGuard();
  LeakGuard(const LeakGuard&) = delete;
  LeakGuard& operator=(const LeakGuard&) = delete;

 private:
  size_t descriptors_;
  size_t threads_;
};

}  // namespace verbena
