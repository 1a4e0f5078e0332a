// SPDX-License-Identifier: Apache-2.0
//
// Queues: many on one device, full ones, numbers that are used again; limits of messages.

#include "tests/vm/rdma_check.h"

#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace verbena {

std::vector<conformance::DeviceUnderTest> conformance::DevicesUnderTest() { return {ThisDevice()}; }

namespace {

using absl::StatusCode;
using conformance::Buffer;
using conformance::Connection;
using conformance::ConnectOneMore;
using conformance::HasCode;
using conformance::HasCodeAndNames;
using conformance::HoldsPattern;
using conformance::IsOk;
using conformance::Loop;
using conformance::Must;
using conformance::Party;
using conformance::Send;

// ---- The device ----

TEST_F(RdmaCheck, DeviceThatIsNotThereIsUnavailableAndTellsWhatIs) {
  const auto device = CreateRdmaDevice({.device = "nope"});
  EXPECT_THAT(device, HasCodeAndNames(StatusCode::kUnavailable, "no RDMA device nope"));
  EXPECT_THAT(device, HasCodeAndNames(StatusCode::kUnavailable,
                                      absl::StrCat(can().device, ": not the one asked for")));
}

TEST_F(RdmaCheck, DeviceIsFoundByItsName) {
  const auto device = CreateRdmaDevice({.device = can().device});
  ASSERT_THAT(device, IsOk());
  EXPECT_EQ((*device)->capabilities().device, can().device);
  const auto name = RdmaDeviceFor(FreshAddress(), AddressUse::kConnect);
  ASSERT_THAT(name, IsOk());
  EXPECT_EQ(*name, can().device);
}

// ---- Full completion queues ----

TEST_F(RdmaCheck, CompletionQueueCannotBePromisedToMoreThanItHolds) {
  const auto queue = Must(device().CreateCompletionQueue(16, nullptr));
  const auto domain = Must(device().AllocateProtectionDomain());
  QueuePairOptions options{.send_queue = queue.get(), .recv_queue = queue.get()};
  options.send_depth = 17;
  options.recv_depth = 0;
  EXPECT_THAT(domain->CreateQueuePair(options),
              HasCodeAndNames(StatusCode::kResourceExhausted, "send_depth = 17"));
  options.send_depth = 8;
  options.recv_depth = 9;
  EXPECT_THAT(domain->CreateQueuePair(options),
              HasCodeAndNames(StatusCode::kResourceExhausted, "recv_depth = 9"));
  EXPECT_THAT(queue->status(), IsOk());
  // What was refused holds nothing.
  options.recv_depth = 8;
  EXPECT_THAT(domain->CreateQueuePair(options), IsOk());
}

TEST_F(RdmaCheck, CompletionQueueThatIsFullLosesNothing) {
  constexpr uint32_t kPairs = 8;
  constexpr uint32_t kDepth = 16;
  const auto queue = Must(device().CreateCompletionQueue(kPairs * kDepth, nullptr));
  const auto domain = Must(device().AllocateProtectionDomain());
  std::vector<std::unique_ptr<QueuePair>> pairs;
  for (uint32_t i = 0; i < kPairs; ++i) {
    pairs.push_back(Must(domain->CreateQueuePair({.send_queue = queue.get(),
                                                  .recv_queue = queue.get(),
                                                  .send_depth = 0,
                                                  .recv_depth = kDepth})));
    for (uint32_t j = 0; j < kDepth; ++j) {
      const RecvWorkRequest request{.wr_id = i * kDepth + j, .sg_list = {}};
      ASSERT_THAT(pairs.back()->PostRecv({&request, 1}), IsOk());
    }
  }
  for (auto& pair : pairs) pair->MoveToError();
  std::map<uint64_t, int> seen;
  loop().RunUntil([&] {
    std::array<WorkCompletion, 7> batch;
    const size_t count = queue->Poll(batch);
    for (size_t i = 0; i < count; ++i) ++seen[batch[i].wr_id];
    return seen.size() == kPairs * kDepth;
  });
  EXPECT_EQ(seen.size(), kPairs * kDepth);
  for (const auto& [id, times] : seen) EXPECT_EQ(times, 1) << id;
  EXPECT_THAT(queue->status(), IsOk());
}

// ---- A pair that goes while completions of it wait ----

class GoneQueuePair : public RdmaCheck {
 protected:
  static constexpr uint64_t kOther = uint64_t{1} << 40;

  void SetUp() override {
    RdmaCheck::SetUp();
    client_ = std::make_unique<Party>("client", device(), loop());
    server_ = std::make_unique<Party>("server", device(), loop());
    queue_ = Must(device().CreateCompletionQueue(1024, nullptr));
    other_ = Connect();
  }
  void TearDown() override {
    other_ = {};
    queue_.reset();
  }
  // The pairs of the client complete to a queue that no loop polls.
  std::unique_ptr<QueuePair> NewPair() {
    QueuePairOptions options = client_->DefaultOptions();
    options.send_queue = options.recv_queue = queue_.get();
    return client_->NewQueuePair(options);
  }
  Connection Connect() {
    Connection connection{.client = NewPair(),
                          .server = server_->NewQueuePair(server_->DefaultOptions())};
    Join(*client_, *connection.client, *server_, *connection.server, FreshAddress());
    return connection;
  }
  // Leaves a completion in the client's queue, or some time later.
  void OtherPairSends() {
    const uint64_t id = kOther + others_sent_++;
    server_->PostRecv(*other_.server, id, {});
    client_->Post(*other_.client, Send(id, {}));
    while (server_->NextCompletion().wr_id != id) {
    }
  }
  // Takes what is in the client's queue: the other pair's, in order, and flushes of the pair
  // `number` from `first` on. Nothing else is there.
  void Take(uint32_t number, uint64_t first, uint64_t* flushed) {
    std::array<WorkCompletion, 5> batch;
    const size_t count = queue_->Poll(batch);
    for (size_t i = 0; i < count; ++i) {
      if (batch[i].wr_id >= kOther) {
        EXPECT_EQ(batch[i].wr_id, kOther + others_seen_++);
        EXPECT_EQ(batch[i].status, CompletionStatus::kSuccess);
        EXPECT_EQ(batch[i].queue_pair_number, other_.client->number());
      } else {
        EXPECT_EQ(batch[i].wr_id, first + (*flushed)++);
        EXPECT_EQ(batch[i].status, CompletionStatus::kFlushed);
        EXPECT_EQ(batch[i].queue_pair_number, number);
      }
    }
  }

  std::unique_ptr<Party> client_;
  std::unique_ptr<Party> server_;
  std::unique_ptr<CompletionQueue> queue_;
  Connection other_;
  uint64_t others_sent_ = 0;
  uint64_t others_seen_ = 0;
};

TEST_F(GoneQueuePair, LeavesNothingToTheNextOfItsNumber) {
  constexpr int kRounds = 200;
  constexpr uint32_t kReceives = 8;
  std::map<uint32_t, int> numbers;
  for (uint64_t round = 0; round < kRounds && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const uint64_t first = round * 2 * kReceives;
    auto gone = NewPair();
    ++numbers[gone->number()];
    for (uint32_t i = 0; i < kReceives; ++i) client_->PostRecv(*gone, first + i, {});
    gone->MoveToError();
    OtherPairSends();
    gone.reset();
    auto next = NewPair();
    ++numbers[next->number()];
    uint64_t flushed = 0;
    for (uint32_t i = 0; i < kReceives; ++i) {
      client_->PostRecv(*next, first + kReceives + i, {});
    }
    for (int i = 0; i < 5; ++i) Take(next->number(), first + kReceives, &flushed);
    EXPECT_EQ(flushed, 0u);
    next->MoveToError();
    EXPECT_TRUE(loop().RunUntil([&] {
      Take(next->number(), first + kReceives, &flushed);
      return flushed == kReceives && others_seen_ == others_sent_;
    })) << flushed
        << " flushes came, and " << others_seen_ << " of the other pair";
  }
  int again = 0;
  for (const auto& [number, times] : numbers) again += times - 1;
  RecordProperty("numbers_used_again", again);
  // Soft-RoCE gives numbers out in turn.
  if (IsSoftIwarp()) {
    EXPECT_GT(again, kRounds);
  }
}

TEST_F(GoneQueuePair, ConnectedOneLeavesNothingAndTakesNothing) {
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Connection gone = Connect();
    for (uint64_t id = 0; id < 8; ++id) {
      client_->PostRecv(*gone.client, 100 + id, {});
      server_->PostRecv(*gone.server, 200 + id, {});
    }
    // Complete, and not polled.
    for (uint64_t id = 0; id < 8; ++id) client_->Post(*gone.client, Send(300 + id, {}));
    for (int i = 0; i < 8; ++i) server_->NextCompletion();
    OtherPairSends();
    gone.client.reset();
    uint64_t flushed = 0;
    EXPECT_TRUE(loop().RunUntil([&] {
      Take(/*number=*/0, /*first=*/0, &flushed);
      return others_seen_ == others_sent_;
    })) << "the other pair's completion is lost";
    server_->ExpectEvent(ConnectionEvent::Type::kDisconnected, gone.server.get());
    gone.server.reset();
    loop().RunQuietly();
    Take(/*number=*/0, /*first=*/0, &flushed);
    EXPECT_EQ(flushed, 0u);
    while (server_->has_completion()) server_->NextCompletion();  // Flushes, polled before the end.
  }
}

// ---- Many ----

TEST_F(RdmaCheck, ManyConnectionsOnOneCompletionQueueComeAndGo) {
  constexpr int kConnections = 64;
  // Soft-iWARP's queues are counted per device that is opened, so the server has its own.
  const auto other_device = Must(CreateRdmaDevice());
  const size_t descriptors_before = CountDescriptors();
  const size_t threads_before = CountThreads();
  for (int round = 0; round < 2; ++round) {
    const conformance::PartyOptions deep{.completion_depth = kConnections * 128};
    Party client("client", device(), loop(), deep);
    Party server("server", *other_device, loop(), deep);
    const auto listener = Must(server.manager().Listen(FreshAddress()));
    std::vector<Connection> connections;
    for (int i = 0; i < kConnections; ++i) {
      Connection& one = connections.emplace_back(
          Connection{.client = client.NewQueuePair(client.DefaultOptions()),
                     .server = server.NewQueuePair(server.DefaultOptions())});
      server.PostRecv(*one.server, i, {});
      Must(client.manager().Connect(*one.client, listener->address(), {}));
      auto asked = server.ExpectEvent(ConnectionEvent::Type::kConnectRequest);
      Must(server.manager().Accept(std::move(asked.request), *one.server, {}));
      client.ExpectEvent(ConnectionEvent::Type::kEstablished, one.client.get());
      server.ExpectEvent(ConnectionEvent::Type::kEstablished, one.server.get());
    }
    for (int i = 0; i < kConnections; ++i) client.Post(*connections[i].client, Send(i, {}));
    std::map<uint64_t, int> sent;
    std::map<uint64_t, int> received;
    for (int i = 0; i < kConnections; ++i) ++sent[client.NextCompletion().wr_id];
    for (int i = 0; i < kConnections; ++i) ++received[server.NextCompletion().wr_id];
    EXPECT_EQ(sent.size(), size_t{kConnections});
    EXPECT_EQ(received.size(), size_t{kConnections});
  }
  EXPECT_TRUE(WaitUntil([&] {
    return CountDescriptors() <= descriptors_before && CountThreads() <= threads_before;
  })) << "descriptors "
      << descriptors_before << " -> " << CountDescriptors() << ", threads " << threads_before
      << " -> " << CountThreads();
}

TEST_F(RdmaCheck, QueuesThatDoNotFitAreRefusedAndLeaveNothing) {
  if (!IsSoftIwarp()) GTEST_SKIP() << "the limit of 144 pages of queues is libsiw's";
  const auto queue = Must(device().CreateCompletionQueue(4096, nullptr));
  const auto domain = Must(device().AllocateProtectionDomain());
  const QueuePairOptions options{
      .send_queue = queue.get(), .recv_queue = queue.get(), .send_depth = 4, .recv_depth = 4};
  std::vector<std::unique_ptr<QueuePair>> pairs;
  size_t first = 0;
  for (int round = 0; round < 3; ++round) {
    absl::Status status;
    while (status.ok() && pairs.size() < 200) {
      auto pair = domain->CreateQueuePair(options);
      status = pair.status();
      if (pair.ok()) pairs.push_back(*std::move(pair));
    }
    // A queue pair is 2 of the 144 pages, and the completion queue the rest.
    EXPECT_GE(pairs.size(), 50u) << round;
    EXPECT_LE(pairs.size(), 71u) << round;
    if (round == 0) first = pairs.size();
    EXPECT_EQ(pairs.size(), first) << round;
    EXPECT_THAT(status, HasCodeAndNames(StatusCode::kResourceExhausted, "use fewer connections"));
    EXPECT_THAT(status, HasCodeAndNames(StatusCode::kResourceExhausted, "ibv_create_qp"));
    for (int again = 0; again < 50; ++again) {
      EXPECT_THAT(domain->CreateQueuePair(options), HasCode(StatusCode::kResourceExhausted));
    }
    pairs.resize(pairs.size() - 10);
  }
}

// ---- Messages ----

class Messages : public RdmaCheck {
 protected:
  void SetUp() override {
    RdmaCheck::SetUp();
    client_ = std::make_unique<Party>("client", device(), loop());
    server_ = std::make_unique<Party>("server", device(), loop());
    connection_ = ConnectOneMore(*client_, *server_, FreshAddress());
  }

  std::unique_ptr<Party> client_;
  std::unique_ptr<Party> server_;
  Connection connection_;
};

TEST_F(Messages, AreInlineUpToTheLimitExactly) {
  const uint32_t limit = can().inline_bytes_max;
  EXPECT_EQ(limit, IsSoftIwarp() ? 80u : 512u);
  const Buffer& to = server_->Allocate(4096);
  std::vector<std::byte> from(limit + 1);
  const auto piece = [&](size_t bytes) {
    return ScatterGatherEntry{.address = reinterpret_cast<uint64_t>(from.data()),
                              .length = static_cast<uint32_t>(bytes),
                              .local_key = {}};
  };
  for (uint32_t bytes : {0u, 1u, limit - 1, limit}) {
    SCOPED_TRACE(bytes);
    conformance::FillPattern(from, bytes);
    server_->PostRecv(*connection_.server, 2, {to.All()});
    client_->Post(*connection_.client, Send(1, {piece(bytes)}).Inline());
    conformance::FillPattern(from, 99);  // It is copied by now.
    client_->ExpectSuccess(1);
    server_->ExpectReceived(2, bytes);
    EXPECT_TRUE(HoldsPattern(to.bytes(0, bytes), bytes));
  }
  size_t accepted = 1;
  EXPECT_THAT(
      client_->TryPost(*connection_.client, {Send(3, {piece(limit + 1)}).Inline()}, &accepted),
      HasCodeAndNames(StatusCode::kInvalidArgument, "inline_bytes_max"));
  EXPECT_EQ(accepted, 0u);
}

TEST_F(Messages, AreRefusedAboveTheDevicesLimit) {
  const uint64_t limit = can().message_bytes_max;
  EXPECT_EQ(limit, IsSoftIwarp() ? 0xffff'ffffu : 0x80'0000u);
  // In two pieces, since a length has 32 bits. Nothing looks at the memory.
  const Buffer& from = client_->Allocate(4096);
  ScatterGatherEntry most = from.All();
  most.length = static_cast<uint32_t>(limit);
  size_t accepted = 1;
  EXPECT_THAT(client_->TryPost(*connection_.client, {Send(1, {most, from.First(1)})}, &accepted),
              HasCodeAndNames(StatusCode::kInvalidArgument, "message_bytes_max"));
  EXPECT_EQ(accepted, 0u);
  // The pair is as good as before.
  server_->PostRecv(*connection_.server, 2, {});
  client_->Post(*connection_.client, Send(1, {}));
  client_->ExpectSuccess(1);
  server_->ExpectReceived(2, 0);
}

TEST_F(Messages, OfTheLargestSizeArriveWhole) {
  if (IsSoftIwarp()) GTEST_SKIP() << "4 GiB do not fit into the guest";
  const uint64_t limit = can().message_bytes_max;
  const Buffer& from = client_->Allocate(limit);
  const Buffer& to = server_->Allocate(limit);
  conformance::FillPattern(from.bytes(), 5);
  server_->PostRecv(*connection_.server, 2, {to.All()});
  client_->Post(*connection_.client, Send(1, {from.All()}));
  client_->ExpectSuccess(1);
  server_->ExpectReceived(2, static_cast<uint32_t>(limit));
  EXPECT_TRUE(HoldsPattern(to.bytes(), 5));
}

TEST_F(Messages, NeverMeetAReceiverThatIsNotReadyInNormalTraffic) {
  for (uint64_t id = 0; id < 2000; ++id) {
    server_->PostRecv(*connection_.server, id, {});
    client_->PostRecv(*connection_.client, id, {});
    client_->Post(*connection_.client, Send(id, {}).Unsignaled());
    server_->ExpectReceived(id, 0);
    server_->Post(*connection_.server, Send(id, {}).Unsignaled());
    client_->ExpectReceived(id, 0);
    // Unsignalled ones give their room back behind a signalled one.
    if (id % 32 != 31) continue;
    server_->PostRecv(*connection_.server, id, {});
    client_->PostRecv(*connection_.client, id, {});
    client_->Post(*connection_.client, Send(id, {}));
    client_->ExpectSuccess(id);
    server_->ExpectReceived(id, 0);
    server_->Post(*connection_.server, Send(id, {}));
    server_->ExpectSuccess(id);
    client_->ExpectReceived(id, 0);
  }
  EXPECT_EQ(connection_.client->counters().receiver_not_ready, 0u);
  EXPECT_EQ(connection_.server->counters().receiver_not_ready, 0u);
  EXPECT_GE(connection_.client->counters().messages_received, 2000u);
}

}  // namespace
}  // namespace verbena
