// SPDX-License-Identifier: Apache-2.0
//
// The software RNIC on its shared-memory wire, with both ways of waking a sleeper.

#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "verbena/tests/conformance/device_under_test.h"
#include "verbena/transport/soft/factory.h"

namespace verbena::conformance {
namespace {

Address FreshAddress() {
  static std::atomic<int> count{0};
  return {.scheme = "shm", .host = absl::StrCat("conformance-", getpid(), "-", count++)};
}

DeviceUnderTest SoftShm(const std::string& name, const SoftDeviceOptions& options) {
  return {.name = name,
          .create = [options] { return CreateSoftDevice(options); },
          .fresh_address = FreshAddress,
          .absent_is_failure = true,
          .known_differences = {},
          .may_report = {}};
}

}  // namespace

std::vector<DeviceUnderTest> DevicesUnderTest() {
  return {SoftShm("SoftShm", {}), SoftShm("SoftShmFenced", {.fence_every_send = true})};
}

}  // namespace verbena::conformance
