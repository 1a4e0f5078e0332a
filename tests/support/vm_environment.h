// SPDX-License-Identifier: Apache-2.0
//
// RDMA ports for tests in the VM. Threads: any.

#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace verbena {

// A port that no other call, in this process or in one that it has started, returns. Each process
// has a range of its own, by its id: there are no sandboxes with namespaces of their own in the VM.
inline uint16_t FreshPort() {
  constexpr int kFirst = 20000;
  constexpr int kPortsOfAProcess = 500;
  constexpr int kProcesses = 80;
  static const int first = kFirst + (getpid() % kProcesses) * kPortsOfAProcess;
  static std::atomic<int> count{0};
  return static_cast<uint16_t>(first + count++ % kPortsOfAProcess);
}

}  // namespace verbena
