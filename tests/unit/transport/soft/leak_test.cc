// SPDX-License-Identifier: Apache-2.0
//
// Connections that come and go, whatever way they go, leave no descriptor and no mapping behind.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "verbena/tests/support/must.h"
#include "verbena/tests/unit/transport/soft/end.h"
#include "verbena/transport/soft/device_impl.h"

namespace verbena::soft {
namespace {

constexpr int kCycles = 200;

size_t CountDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// Of our own kind; the allocator's come and go.
size_t CountMappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:verbena") != std::string::npos) ++count;
  }
  return count;
}

// What the peer of cycle `cycle` does: each way to go in turn.
int RunPeer(const std::string& name, int cycle) {
  End end({.depth = 16});
  end.Connect(name);
  end.Send(1, 0, 1000);
  end.AwaitCompletion();
  if (cycle % 3 == 0) raise(SIGKILL);
  if (cycle % 3 == 1) end.AwaitEvent();
  return 0;
}

void RunCycle(End& server, int cycle) {
  server.pair = Must(server.domain->CreateQueuePair({.send_queue = server.queue.get(),
                                                     .recv_queue = server.queue.get(),
                                                     .send_depth = 16,
                                                     .recv_depth = 16}));
  server.PostRecv(1, 0, 4096);
  server.Accept();
  EXPECT_EQ(server.AwaitCompletion().byte_length, 1000u);
  if (cycle % 3 == 1) {
    server.manager->Disconnect(*server.pair);
  } else {
    const ConnectionEvent event = server.AwaitEvent();
    EXPECT_EQ(event.type, ConnectionEvent::Type::kDisconnected);
    EXPECT_EQ(event.status.message(),
              cycle % 3 == 0 ? "the peer's process ended" : "the peer disconnected");
  }
  server.pair.reset();
}

TEST(Leak, ConnectAndGoLeavesNothing) {
  const std::string name = FreshName();
  // Forks a peer per cycle, since this process has a device by then and can't.
  Child spawner([&] {
    for (int i = 0; i < kCycles; ++i) {
      Child peer([&] { return RunPeer(name, i); });
      if (peer.Join() != (i % 3 == 0 ? -SIGKILL : 0)) return 1;
    }
    return 0;
  });
  End server({.depth = 16});
  server.pair.reset();
  server.Listen(name);
  size_t descriptors = 0;
  size_t mappings = 0;
  for (int i = 0; i < kCycles; ++i) {
    RunCycle(server, i);
    // The listener is what is left, beside the next peer in its handshake.
    EXPECT_LE(static_cast<SoftDevice&>(*server.device).control().LinkCount(), 2u);
    if (i == 2) {  // What is allocated once is there now.
      descriptors = CountDescriptors();
      mappings = CountMappings();
    }
  }
  EXPECT_EQ(spawner.Join(), 0);
  EXPECT_LE(CountDescriptors(), descriptors);
  EXPECT_EQ(CountMappings(), mappings);
  EXPECT_EQ(static_cast<SoftDevice&>(*server.device).control().LinkCount(), 1u);
}

TEST(Leak, RegionsThatComeAndGoAreUnmappedByThePeer) {
  const std::string name = FreshName();
  End server;
  End client;
  server.Listen(name);
  Must(client.manager->Connect(*client.pair, {"shm", name, 0}, {}));
  server.Accept();
  EXPECT_EQ(client.AwaitEvent().type, ConnectionEvent::Type::kEstablished);
  const auto settle = [&] {  // Until the control threads have passed on all there is.
    for (int i = 0; i < 20; ++i) {
      WorkCompletion none;
      EXPECT_EQ(client.queue->Poll({&none, 1}) + server.queue->Poll({&none, 1}), 0u);
      usleep(1000);
    }
  };
  settle();
  const size_t descriptors = CountDescriptors();
  const size_t mappings = CountMappings();
  for (int i = 0; i < kCycles; ++i) {
    const auto region = Must(server.domain->AllocateMemory(1 << 20, kAccessLocalWrite));
    if (i % 10 == 0) settle();
  }
  settle();
  EXPECT_EQ(CountDescriptors(), descriptors);
  EXPECT_EQ(CountMappings(), mappings);
}

}  // namespace
}  // namespace verbena::soft
