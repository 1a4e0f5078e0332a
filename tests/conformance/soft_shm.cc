// SPDX-License-Identifier: Apache-2.0
//
// The software RNIC on its shared-memory wire, with both ways of waking a sleeper.

#include <atomic>
#include <random>

#include "absl/strings/str_cat.h"
#include "verbena/tests/conformance/device_under_test.h"
#include "verbena/transport/soft/factory.h"

namespace verbena::conformance {
namespace {

Address FreshAddress() {
  // Not the process id: in Bazel's sandbox every test has the same one, and all share the names.
  static const uint32_t process = std::random_device{}();
  static std::atomic<int> count{0};
  return {.scheme = "shm", .host = absl::StrCat("conformance-", process, "-", count++)};
}

// A receive of a shared queue is shown to every pair at once, with the length of the longest, since
// a sender must find it in its own peer's memory.
constexpr char kShownToAll[] = "a message that found no receive left waits at the receiver";
constexpr char kShownLongest[] = "only the receiver learns that the receive was too short";
constexpr char kOneBitPerPair[] = "each pair of an armed queue wakes once, not only the first";

DeviceUnderTest SoftShm(const std::string& name, const SoftDeviceOptions& options) {
  return {
      .name = name,
      .create = [options] { return CreateSoftDevice(options); },
      .fresh_address = FreshAddress,
      .absent_is_failure = true,
      .effort_divisor = 1,
      .known_differences = {{"SharedReceive.NoMoreSendsSucceedThanThereAreReceives", kShownToAll},
                            {"SharedReceive.TooLongForTheNextReceiveIsToldBothSides",
                             kShownLongest},
                            {"Sleeping.OneArmingIsOneEventOfAllPairs", kOneBitPerPair}},
      .may_report = {}};
}

}  // namespace

std::vector<DeviceUnderTest> DevicesUnderTest() {
  return {SoftShm("SoftShm", {}), SoftShm("SoftShmFenced", {.fence_every_send = true})};
}

}  // namespace verbena::conformance
