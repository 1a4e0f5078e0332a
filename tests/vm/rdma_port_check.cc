// SPDX-License-Identifier: Apache-2.0
//
// A port that goes down and comes up again. Run last in a VM, and with no connection: a Soft-RoCE
// device whose port was down while the connection manager used it does not connect any more.

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/vm/rdma_check.h"

namespace verbena {

std::vector<conformance::DeviceUnderTest> conformance::DevicesUnderTest() { return {ThisDevice()}; }

namespace {

class PortCheck : public RdmaCheck {
 protected:
  void TearDown() override { SetLink("up"); }

  static void SetLink(const char* state) {
    const char* arguments[] = {"ip", "link", "set", "dummy0", state, nullptr};
    pid_t pid = 0;
    ASSERT_EQ(posix_spawnp(&pid, "ip", nullptr, nullptr, const_cast<char**>(arguments), environ),
              0);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0) << "ip link set dummy0 " << state;
  }

  bool IsReadable(int timeout_ms) {
    pollfd entry{.fd = device().async_fd(), .events = POLLIN, .revents = 0};
    return poll(&entry, 1, timeout_ms) == 1;
  }
  // By the descriptor alone.
  void ExpectNext(AsyncEvent::Type type) {
    ASSERT_TRUE(IsReadable(/*timeout_ms=*/20'000)) << "async_fd did not become readable";
    AsyncEvent event;
    ASSERT_TRUE(device().PollAsyncEvent(&event));
    EXPECT_EQ(event.type, type) << static_cast<uint32_t>(event.type);
  }
};

TEST_F(PortCheck, GoingDownAndUpAreEvents) {
  logs_.Allow("went down");
  AsyncEvent event;
  EXPECT_FALSE(IsReadable(0));
  EXPECT_FALSE(device().PollAsyncEvent(&event));
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    SetLink("down");
    ExpectNext(AsyncEvent::Type::kPortError);
    EXPECT_FALSE(IsReadable(50));
    SetLink("up");
    ExpectNext(AsyncEvent::Type::kPortActive);
    EXPECT_FALSE(IsReadable(50));
    EXPECT_FALSE(device().PollAsyncEvent(&event));
  }
  EXPECT_EQ(logs_.Count("went down"), 3);
}

TEST_F(PortCheck, QueuesOfADeviceWhosePortWasDownAreNotBroken) {
  logs_.Allow("went down");
  conformance::Party party("party", device(), loop());
  party.MakePair(party.DefaultOptions());
  SetLink("down");
  ExpectNext(AsyncEvent::Type::kPortError);
  EXPECT_TRUE(party.queue().status().ok()) << party.queue().status();
  SetLink("up");
  ExpectNext(AsyncEvent::Type::kPortActive);
  EXPECT_TRUE(party.queue().status().ok()) << party.queue().status();
}

TEST_F(PortCheck, DeviceWithThePortDownIsOpenedAndSaysNothingOfTheWay) {
  logs_.Allow("went down");
  SetLink("down");
  ExpectNext(AsyncEvent::Type::kPortError);
  const auto device = CreateRdmaDevice();
  EXPECT_TRUE(device.ok()) << device.status();
}

}  // namespace
}  // namespace verbena
