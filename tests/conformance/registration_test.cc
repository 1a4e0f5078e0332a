// SPDX-License-Identifier: Apache-2.0
//
// Registering memory: rights, refusals, user memory and the device's own.

#include <algorithm>
#include <atomic>
#include <thread>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using absl::StatusCode;

class Registration : public ConnectedPair {
 protected:
  ProtectionDomain& domain() { return client().domain(); }
};

TEST_P(Registration, AllocatesZeroedAlignedMemory) {
  for (bool prefault : {false, true}) {
    for (size_t bytes : {size_t{1}, size_t{4096}, size_t{10000}, size_t{3} << 20}) {
      SCOPED_TRACE(bytes);
      const auto region = Must(domain().AllocateMemory(bytes, kAccessReadWrite, prefault));
      EXPECT_EQ(region->size(), bytes);
      EXPECT_EQ(region->address() % 4096, 0u);
      EXPECT_EQ(region->access(), kAccessReadWrite);
      EXPECT_TRUE(HoldsOnly(region->bytes(), 0));
      std::ranges::fill(region->bytes(), std::byte{1});
    }
  }
}

TEST_P(Registration, MemoryThatIsAllocatedAgainIsZeroed) {
  for (int i = 0; i < 4; ++i) {
    const auto region = Must(domain().AllocateMemory(65536, kAccessReadWrite));
    ASSERT_TRUE(HoldsOnly(region->bytes(), 0)) << i;
    std::ranges::fill(region->bytes(), std::byte{0xaa});
  }
}

TEST_P(Registration, RegistersUserMemoryInPlace) {
  std::vector<std::byte> memory(10000, std::byte{0x5a});
  auto region = Must(domain().RegisterMemory(memory.data() + 3, 5000, kAccessLocalWrite));
  EXPECT_EQ(region->address(), reinterpret_cast<uint64_t>(memory.data() + 3));
  EXPECT_EQ(region->size(), 5000u);
  EXPECT_EQ(region->access(), kAccessLocalWrite);
  region.reset();
  EXPECT_TRUE(HoldsOnly(memory, 0x5a)) << "the memory stays the caller's";
}

// A wish: devices that know no other order take it, too.
TEST_P(Registration, RelaxedOrderingIsTakenByEveryDevice) {
  const Buffer& from = client().Allocate(4096, kAccessLocalRead | kAccessRelaxedOrdering);
  const Buffer& to = server().Allocate(4096, kAccessLocalWrite | kAccessRelaxedOrdering);
  FillPattern(from.bytes(), 1);
  server().PostRecv(2, {to.All()});
  client().Post(Send(1, {from.All()}));
  server().ExpectReceived(2, 4096);
  EXPECT_TRUE(HoldsPattern(to.bytes(), 1));
}

TEST_P(Registration, EmptyRangeIsRefused) {
  std::byte byte{};
  EXPECT_THAT(domain().RegisterMemory(&byte, 0, kAccessLocalWrite),
              HasCode(StatusCode::kInvalidArgument));
  EXPECT_THAT(domain().AllocateMemory(0, kAccessLocalWrite), HasCode(StatusCode::kInvalidArgument));
}

TEST_P(Registration, RemoteWriteNeedsLocalWrite) {
  EXPECT_THAT(domain().AllocateMemory(4096, kAccessRemoteWrite),
              HasCode(StatusCode::kInvalidArgument));
  EXPECT_THAT(domain().AllocateMemory(4096, kAccessRemoteWrite | kAccessRemoteRead),
              HasCode(StatusCode::kInvalidArgument));
  std::byte bytes[64];
  EXPECT_THAT(domain().RegisterMemory(bytes, sizeof(bytes), kAccessRemoteWrite),
              HasCode(StatusCode::kInvalidArgument));
}

TEST_P(Registration, RemoteAtomicNeedsLocalWrite) {
  REQUIRE_CAPABILITY(atomics);
  EXPECT_THAT(domain().AllocateMemory(4096, kAccessRemoteAtomic),
              HasCode(StatusCode::kInvalidArgument));
}

TEST_P(Registration, RemoteRightsToUserMemoryFollowTheCapability) {
  std::vector<std::byte> memory(4096);
  for (AccessFlags right : {kAccessRemoteRead, kAccessRemoteWrite}) {
    const auto region =
        domain().RegisterMemory(memory.data(), memory.size(), kAccessLocalWrite | right);
    if (can().remote_access_to_user_memory) {
      EXPECT_THAT(region, IsOk()) << right;
    } else {
      EXPECT_THAT(region, HasCodeAndNames(StatusCode::kUnimplemented, "AllocateMemory")) << right;
    }
  }
}

TEST_P(Registration, MoreMemoryThanThereIsIsExhaustion) {
  EXPECT_THAT(domain().AllocateMemory(size_t{1} << 60, kAccessLocalWrite),
              HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(domain().AllocateMemory(~size_t{0}, kAccessLocalWrite),
              HasCode(StatusCode::kResourceExhausted));
}

TEST_P(Registration, TooManyRegionsAreExhaustionAndRecover) {
  std::vector<std::unique_ptr<MemoryRegion>> regions;
  while (regions.size() < 6000) {
    auto region = domain().AllocateMemory(64, kAccessReadWrite);
    if (!region.ok()) {
      EXPECT_THAT(region, HasCode(StatusCode::kResourceExhausted)) << regions.size();
      break;
    }
    regions.push_back(*std::move(region));
  }
  EXPECT_GE(regions.size(), 100u);
  regions.resize(regions.size() / 2);
  EXPECT_THAT(domain().AllocateMemory(64, kAccessReadWrite), IsOk());
}

TEST_P(Registration, RegionsOfOneRangeAreIndependent) {
  std::vector<std::byte> memory(4096);
  const Buffer& from = client().Allocate(64);
  auto first = Must(server().domain().RegisterMemory(memory.data(), 4096, kAccessLocalWrite));
  const auto second =
      Must(server().domain().RegisterMemory(memory.data(), 4096, kAccessLocalWrite));
  EXPECT_NE(first->local_key(), second->local_key());
  first.reset();
  server().PostRecv(2, {{second->address(), 64, second->local_key()}});
  client().Post(Send(1, {from.First(64)}));
  server().ExpectReceived(2, 64);
}

TEST_P(Registration, KeysOfLiveRegionsDiffer) {
  std::vector<std::unique_ptr<MemoryRegion>> regions;
  std::vector<uint32_t> keys;
  for (int i = 0; i < 200; ++i) {
    regions.push_back(Must(domain().AllocateMemory(64, kAccessReadWrite)));
    keys.push_back(regions.back()->remote_key().value);
    if (i % 3 == 0) {
      regions.erase(regions.begin());
      keys.erase(keys.begin());
    }
  }
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST_P(Registration, SurvivesManyRoundsOfRegisteringAndUsing) {
  const Buffer& from = client().Allocate(4096);
  FillPattern(from.bytes(), 1);
  for (int i = 0; i < 300; ++i) {
    const auto region = Must(server().domain().AllocateMemory(4096, kAccessReadWrite));
    client().Post(Write(1, {from.All()}, {region->address(), region->remote_key()}));
    client().ExpectSuccess(1);
    ASSERT_TRUE(HoldsPattern(region->bytes(), 1)) << i;
  }
}

TEST_P(Registration, OfOneThreadDisturbsNoTrafficOfAnother) {
  const Buffer& from = client().Allocate(4096);
  const Buffer& to = server().Allocate(4096);
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread registrar = StartThread([&] {
    std::vector<std::byte> memory(8192);
    while (!stop) {
      Must(client().domain().AllocateMemory(8192, kAccessReadWrite));
      Must(server().domain().RegisterMemory(memory.data(), memory.size(), kAccessLocalWrite));
      ++rounds;
    }
  });
  for (uint32_t i = 0; i < 500 || rounds < 20; ++i) {
    FillPattern(from.bytes(0, 2000), i);
    server().PostRecv(2, {to.First(2000)});
    client().Post(
        {Write(1, {from.First(1000)}, to.At(2048)).Unsignaled(), Send(3, {from.First(2000)})});
    server().ExpectReceived(2, 2000);  // So the write before it has landed.
    client().ExpectSuccess(3);
    if (!HoldsPattern(to.bytes(0, 2000), i) || !HoldsPattern(to.bytes(2048, 1000), i)) {
      ADD_FAILURE() << "wrong bytes in round " << i;
      break;
    }
    if (HasFailure()) break;
  }
  stop = true;
  registrar.join();
}

VERBENA_CONFORMANCE(Registration);

}  // namespace
}  // namespace verbena::conformance
