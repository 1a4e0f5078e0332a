// SPDX-License-Identifier: Apache-2.0
//
// What a program under test finds in the VM. Run by vm_test only.

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/resource.h>

#include <string>

#include "verbena/tests/support/vm_environment.h"

namespace verbena {
namespace {

// All devices are of one kind, and their names begin with it.
TEST(VmDevice, IsActive) {
  const std::string device = Environment("VERBENA_TEST_DEVICE");
  const bool is_pair = device == "rxepair" || device == "siwpair";
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  ASSERT_NE(devices, nullptr);
  EXPECT_EQ(count, is_pair ? 2 : 1);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(std::string(ibv_get_device_name(devices[i])).substr(0, 3), device.substr(0, 3));
    ibv_context* context = ibv_open_device(devices[i]);
    ASSERT_NE(context, nullptr);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  ibv_free_device_list(devices);
}

TEST(VmDevice, HasAnAddress) {
  const std::string device = Environment("VERBENA_TEST_DEVICE");
  const bool is_pair = device == "rxepair" || device == "siwpair";
  EXPECT_EQ(Environment("VERBENA_TEST_HOST"), is_pair ? "10.3.0.2" : "10.1.0.1");
}

TEST(VmDevice, MayLockAnyAmountOfMemory) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, RLIM_INFINITY);
}

}  // namespace
}  // namespace verbena
