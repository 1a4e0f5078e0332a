// SPDX-License-Identifier: Apache-2.0
//
// On a host without RDMA the device, its lookup, channels and servers say why, and what to do.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tests/support/leak_guard.h"
#include "verbena/tests/support/log_guard.h"
#include "verbena/tests/support/status_matchers.h"
#include "verbena/tests/support/text_service.h"
#include "verbena/transport/rdma/factory.h"

namespace verbena {
namespace {

// The reasons of factory.h, each by the words that tell what to do.
constexpr const char* kReasons[] = {
    "the kernel has no ib_uverbs module (modprobe ib_uverbs)",
    "/dev/infiniband is not visible here; give it to the container (--device=/dev/infiniband)",
    "there is no NIC with a driver, and no software one (rdma link add rxe0 type rxe",
    "no permission to open it: look at the rights of /dev/infiniband",
    "it cannot be opened; in a container, is /dev/infiniband given to it?",
};

MATCHER(SaysWhyThereIsNoRdma, "is UNAVAILABLE with one of the known reasons") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status;
  if (!absl::IsUnavailable(status)) return false;
  for (const char* reason : kReasons) {
    if (absl::StrContains(status.message(), reason)) return true;
  }
  return false;
}

constexpr char kTarget[] = "rdma:127.0.0.1:7471";

class NoRdma : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CreateRdmaDevice();
    if (device.ok()) {
      GTEST_SKIP() << "this host has an RDMA device, " << (*device)->capabilities().device;
    }
  }

  LogGuard logs_;
  LeakGuard leaks_;
};

TEST_F(NoRdma, DeviceSaysWhy) { EXPECT_THAT(CreateRdmaDevice(), SaysWhyThereIsNoRdma()); }

TEST_F(NoRdma, LookupSaysWhy) {
  if (std::filesystem::exists("/sys/class/infiniband_verbs/uverbs0")) {
    GTEST_SKIP() << "this host has an RDMA device, though it cannot be opened";
  }
  EXPECT_THAT(
      RdmaDeviceFor({.scheme = "rdma", .host = "127.0.0.1", .port = 7471}, AddressUse::kConnect),
      SaysWhyThereIsNoRdma());
  EXPECT_THAT(RdmaDeviceFor({.scheme = "rdma", .host = "nobody.invalid", .port = 7471},
                            AddressUse::kListen),
              SaysWhyThereIsNoRdma());
}

TEST_F(NoRdma, ChannelSaysWhyAndEnds) {
  const std::shared_ptr<Channel> channel = CreateChannel(kTarget);
  EXPECT_THAT(channel->WaitForConnected(std::chrono::seconds(20)), SaysWhyThereIsNoRdma());
}

TEST_F(NoRdma, ServerSaysWhy) {
  TextService service;
  ServerBuilder builder;
  builder.AddListeningPort(kTarget).RegisterService(&service);
  EXPECT_THAT(builder.BuildAndStart(), SaysWhyThereIsNoRdma());
}

}  // namespace
}  // namespace verbena
