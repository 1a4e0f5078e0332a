// SPDX-License-Identifier: Apache-2.0
//
// Run last in a VM: what all tests before it may never have caused.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace verbena {
namespace {

// Credits make it impossible (ARCHITECTURE.md). Soft-iWARP has no such counter: there the connection
// would have ended.
TEST(Counters, NoReceiverWasNotReady) {
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband")) {
    for (const char* name : {"rcvd_rnr_err", "send_rnr_err", "retry_rnr_exceeded_err"}) {
      const std::filesystem::path path = device.path() / "ports/1/hw_counters" / name;
      std::ifstream file(path);
      uint64_t count = 0;
      if (!(file >> count)) continue;
      EXPECT_EQ(count, 0u) << path;
    }
  }
}

}  // namespace
}  // namespace verbena
