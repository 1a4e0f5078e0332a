// SPDX-License-Identifier: Apache-2.0
//
// What a test finds in the VM, and addresses on its RDMA device: VERBENA_TEST_DEVICE and
// VERBENA_TEST_HOST (tests/vm/vm_test.bzl). Threads: any.

#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "verbena/transport/address.h"

namespace verbena {

// Empty: not set.
inline std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

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

// Of the VM's device, or of another `host` with one.
inline Address FreshRdmaAddress(std::string host = Environment("VERBENA_TEST_HOST")) {
  return {.scheme = "rdma", .host = std::move(host), .port = FreshPort()};
}

}  // namespace verbena
