// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/support/leak_guard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

#include "verbena/tests/support/must.h"
#include "verbena/tests/support/vm_environment.h"
#include "verbena/tests/support/wait.h"
#include "verbena/transport/rdma/factory.h"

namespace verbena {
namespace {

size_t CountEntries(const char* directory) {
  size_t count = 0;
  for (std::filesystem::directory_iterator at(directory), end; at != end; ++at) ++count;
  return count;
}

std::string DescribeDescriptors() {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    text += entry.path().filename().string() + " -> " +
            std::filesystem::read_symlink(entry.path(), error).string() + "\n";
  }
  return text;
}

// In a VM with an RDMA device. librdmacm opens each device once, and keeps it.
void WarmUpRdma(const std::string& host) {
  const Address address = FreshRdmaAddress(host);
  const auto name = RdmaDeviceFor(address, AddressUse::kListen);
  if (!name.ok()) return;
  auto device = Must(CreateRdmaDevice({.device = *name}));
  auto manager = Must(device->CreateConnectionManager());
  Must(manager->Listen(address));
}

}  // namespace

// Both counts include what the counting itself opens, always the same.
size_t CountDescriptors() { return CountEntries("/proc/self/fd"); }
size_t CountThreads() { return CountEntries("/proc/self/task"); }

LeakGuard::LeakGuard() {
  // The first thread of a process may bring others of its own (ThreadSanitizer's).
  static const bool warm = [] {
    std::thread([] {}).join();
    if (const std::string host = Environment("VERBENA_TEST_HOST"); !host.empty()) {
      // Of a pair it is the second.
      if (host == "10.3.0.2") WarmUpRdma("10.3.0.1");
      WarmUpRdma(host);
    }
    return true;
  }();
  (void)warm;
  descriptors_ = CountDescriptors();
  threads_ = CountThreads();
}

LeakGuard::~LeakGuard() {
  const bool clean =
      WaitUntil([this] { return CountDescriptors() <= descriptors_ && CountThreads() <= threads_; },
                std::chrono::seconds(2));
  if (clean) return;
  ADD_FAILURE() << "descriptors " << descriptors_ << " -> " << CountDescriptors() << ", threads "
                << threads_ << " -> " << CountThreads() << "; now open:\n"
                << DescribeDescriptors();
}

}  // namespace verbena
