// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/verdict.h"

#include <cerrno>
#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "verbena/tests/doctor/facts_for_test.h"

namespace verbena::doctor {
namespace {

using testing::HasSubstr;

Verdict JudgeAfter(const std::function<void(Facts*)>& change) {
  Facts facts = HealthyRoce();
  change(&facts);
  return Judge(facts, Family::kAny);
}

Reason ReasonAfter(const std::function<void(Facts*)>& change) { return JudgeAfter(change).reason; }

TEST(Verdict, UsableNamesTheAddress) {
  Verdict verdict = JudgeAfter([](Facts*) {});
  EXPECT_EQ(verdict.reason, Reason::kUsable);
  EXPECT_EQ(verdict.devices[0].detail, "by 10.0.0.7");
}

TEST(Verdict, NoModuleAndNoDevice) {
  EXPECT_EQ(Judge(Nothing(), Family::kAny).reason, Reason::kNoVerbsModule);
}

TEST(Verdict, ModuleButNoDevice) {
  EXPECT_EQ(ReasonAfter([](Facts* facts) { facts->devices.clear(); }), Reason::kNoDevice);
}

TEST(Verdict, DeviceButNoModule) {
  EXPECT_EQ(ReasonAfter([](Facts* facts) {
              facts->host.uverbs_module = false;
              facts->devices[0].verbs = VerbsFacts();
            }),
            Reason::kNoVerbsModule);
}

TEST(Verdict, NoFilesInTheContainer) {
  Verdict verdict = JudgeAfter([](Facts* facts) {
    facts->host.device_folder = false;
    facts->devices[0].node.exists = false;
    facts->devices[0].node.open_errno = ENOENT;
  });
  EXPECT_EQ(verdict.reason, Reason::kNoDeviceNode);
  EXPECT_EQ(verdict.detail, "mlx5_0: /dev/infiniband is missing");
}

TEST(Verdict, NoPermission) {
  for (int error : {EACCES, EPERM}) {
    EXPECT_EQ(ReasonAfter([&](Facts* facts) { facts->devices[0].node.open_errno = error; }),
              Reason::kNoPermission);
  }
  EXPECT_EQ(ReasonAfter([](Facts* facts) { facts->devices[0].node.open_errno = ENODEV; }),
            Reason::kOpenFailed);
}

TEST(Verdict, NoProviderLibrary) {
  EXPECT_EQ(ReasonAfter([](Facts* facts) { facts->devices[0].verbs = VerbsFacts(); }),
            Reason::kNoProvider);
}

TEST(Verdict, VerbsWithoutReliableConnections) {
  Verdict verdict = JudgeAfter([](Facts* facts) {
    facts->devices[0].verbs.reliable_connection_errno = EOPNOTSUPP;
    facts->devices[0].verbs.capabilities.reliable_connection = {
        Support::kNo, "queue pair refused: Operation not supported"};
  });
  EXPECT_EQ(verdict.reason, Reason::kNoReliableConnection);
  EXPECT_THAT(verdict.detail, HasSubstr("Operation not supported"));
}

TEST(Verdict, NoMemoryForAQueuePair) {
  EXPECT_EQ(ReasonAfter([](Facts* facts) {
              facts->devices[0].verbs.reliable_connection_errno = ENOMEM;
              facts->devices[0].verbs.capabilities.reliable_connection.support = Support::kNo;
            }),
            Reason::kNoMemory);
}

TEST(Verdict, LockedMemoryBelowOneConnection) {
  // The old default of Linux.
  EXPECT_EQ(ReasonAfter([](Facts* facts) { facts->host.memlock_bytes = 64 << 10; }),
            Reason::kNoMemory);
  EXPECT_EQ(ReasonAfter([](Facts* facts) {
              facts->host.memlock_bytes = 64 << 10;
              facts->host.memlock_exempt = true;
            }),
            Reason::kUsable);
}

TEST(Verdict, PortDownUnlessAnotherIsUp) {
  auto down = [](Facts* facts) {
    facts->devices[0].ports[0].state = "DOWN";
    facts->devices[0].ports[0].physical_state = "Disabled";
  };
  EXPECT_EQ(JudgeAfter(down).reason, Reason::kPortDown);
  EXPECT_EQ(JudgeAfter(down).detail, "mlx5_0: port 1 is DOWN, Disabled");
  EXPECT_EQ(ReasonAfter([&](Facts* facts) {
              facts->devices[0].ports.push_back(facts->devices[0].ports[0]);
              down(facts);
            }),
            Reason::kUsable);
}

TEST(Verdict, NoConnectionManager) {
  EXPECT_EQ(ReasonAfter([](Facts* facts) { facts->host.connection_manager.exists = false; }),
            Reason::kNoConnectionManager);
  EXPECT_EQ(ReasonAfter([](Facts* facts) { facts->host.connection_manager.open_errno = EACCES; }),
            Reason::kNoConnectionManager);
}

TEST(Verdict, NoAddressLeadsToIt) {
  // As with two software devices on one net device: the other one gets all.
  EXPECT_EQ(ReasonAfter([](Facts* facts) { facts->host.routes[0].device = "siw0"; }),
            Reason::kNoAddress);
  EXPECT_EQ(Judge(HealthyRoce(), Family::kIpv6).reason, Reason::kNoAddress);
  EXPECT_EQ(Judge(HealthyRoce(), Family::kIpv4).reason, Reason::kUsable);
}

TEST(Verdict, NetDeviceInAnotherNamespace) {
  Verdict verdict = JudgeAfter([](Facts* facts) {
    facts->host.routes.clear();
    facts->netdevs[0].name = "veth7";
  });
  EXPECT_EQ(verdict.reason, Reason::kOtherNamespace);
  EXPECT_EQ(verdict.detail, "mlx5_0: its net device eth0 is in another network namespace");
}

TEST(Verdict, OneUsableDeviceIsEnough) {
  for (bool first : {false, true}) {
    Verdict verdict = JudgeAfter([&](Facts* facts) {
      DeviceFacts broken = facts->devices[0];
      broken.name = "efa_0";
      broken.verbs.capabilities.reliable_connection.support = Support::kNo;
      facts->devices.insert(first ? facts->devices.begin() : facts->devices.end(), broken);
    });
    EXPECT_EQ(verdict.reason, Reason::kUsable);
    EXPECT_EQ(verdict.devices[first ? 0 : 1].reason, Reason::kNoReliableConnection);
  }
}

TEST(Verdict, TellsOfTheDeviceThatGotFurthest) {
  Verdict verdict = JudgeAfter([](Facts* facts) {
    facts->devices.push_back(facts->devices[0]);
    facts->devices[0].name = "mlx5_9";
    facts->devices[0].node.open_errno = EACCES;
    facts->devices[1].ports[0].state = "DOWN";
  });
  EXPECT_EQ(verdict.reason, Reason::kPortDown);
  EXPECT_THAT(verdict.detail, HasSubstr("mlx5_0: "));
}

TEST(Verdict, ReasonsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Reason::kUsable); ++i) {
    names.insert(Name(static_cast<Reason>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Reason::kUsable) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
}

TEST(Verdict, AConnectionNeedsWhatItsOptionsSay) {
  // 128 receive and 12 send slots of 4 KiB and a cache line each.
  EXPECT_EQ(ConnectionBytes(), 140u * 4160u);
  HostFacts host;
  host.memlock_bytes = uint64_t{8} << 20;
  EXPECT_EQ(ConnectionsByMemlock(host), 14u);
}

}  // namespace
}  // namespace verbena::doctor
