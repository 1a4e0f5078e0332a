// SPDX-License-Identifier: Apache-2.0
//
// Shared receive queues: three queue pairs of the server take their receives from one.
// ibv_create_srq(3), ibv_modify_srq(3); InfiniBand specification vol. 1, 10.2.9.

#include <algorithm>
#include <map>
#include <set>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using absl::StatusCode;
using Status = CompletionStatus;

constexpr uint32_t kDepth = 16;
constexpr size_t kPairs = 3;

class SharedReceive : public TwoParties {
 protected:
  void SetUp() override {
    TwoParties::SetUp();
    if (IsSkipped()) return;
    REQUIRE_CAPABILITY(shared_receive_queue);
    queue_ = Must(server().domain().CreateSharedReceiveQueue(
        {.depth = kDepth, .sge_max = std::min(can().recv_sge_max, 2u)}));
    for (size_t i = 0; i < kPairs; ++i) {
      QueuePairOptions options = server().DefaultOptions();
      options.shared_receive = queue_.get();
      connections_.push_back({.client = client().NewQueuePair(client().DefaultOptions()),
                              .server = server().NewQueuePair(options)});
      Join(client(), *connections_.back().client, server(), *connections_.back().server,
           FreshAddress());
    }
  }

  SharedReceiveQueue& queue() { return *queue_; }
  QueuePair& client_pair(size_t i) { return *connections_[i].client; }
  QueuePair& server_pair(size_t i) { return *connections_[i].server; }
  void DestroyServerPair(size_t i) { connections_[i].server.reset(); }

  // One message of `size` bytes on connection `i`, into receive `id`.
  void ExpectDelivery(size_t i, const Buffer& from, size_t size, const Buffer& to, uint64_t id) {
    SCOPED_TRACE(testing::Message() << size << " bytes on connection " << i);
    FillPattern(from.bytes(0, size), static_cast<uint32_t>(size + i));
    server().PostRecv(queue(), id, {to.First(size)});
    client().Post(client_pair(i), Send(1, {from.First(size)}));
    const WorkCompletion completion = server().ExpectSuccess(id, CompletionOpcode::kRecv);
    EXPECT_EQ(completion.queue_pair_number, server_pair(i).number());
    EXPECT_EQ(completion.byte_length, size);
    EXPECT_TRUE(HoldsPattern(to.bytes(0, size), static_cast<uint32_t>(size + i)));
    client().ExpectSuccess(1);
  }

 private:
  std::unique_ptr<SharedReceiveQueue> queue_;
  std::vector<Connection> connections_;
};

TEST_P(SharedReceive, ServesThePairOnWhichTheMessageComes) {
  const Buffer& from = client().Allocate(4096);
  const Buffer& to = server().Allocate(4096);
  uint64_t id = 100;
  for (size_t i : {0, 2, 1, 1, 0}) {
    for (size_t size : {0, 8, 111, 112, 113, 4096}) ExpectDelivery(i, from, size, to, id++);
  }
}

TEST_P(SharedReceive, KeepsTheOrderOfEachPairAndUsesEachReceiveOnce) {
  constexpr uint64_t kMessages = 100;
  const Buffer& from = client().Allocate(8 * kPairs * kMessages);
  const Buffer& to = server().Allocate(8 * kDepth);
  for (uint64_t id = 0; id < kDepth; ++id) {
    server().PostRecv(queue(), id, {to.Piece(8 * id, 8)});
  }
  std::map<uint32_t, uint64_t> next_of_pair;
  for (size_t i = 0; i < kPairs; ++i) next_of_pair[server_pair(i).number()] = 0;
  std::vector<uint64_t> sent(kPairs, 0);
  size_t in_flight = 0;
  for (uint64_t received = 0; received < kPairs * kMessages;) {
    for (size_t i = 0; i < kPairs; ++i) {
      if (sent[i] == kMessages || in_flight == kDepth) continue;
      const size_t offset = 8 * (i * kMessages + sent[i]);
      from.word(offset) = sent[i]++;
      client().Post(client_pair(i), Send(7, {from.Piece(offset, 8)}));
      ++in_flight;
    }
    const WorkCompletion completion = server().NextCompletion();
    ASSERT_EQ(completion.status, Status::kSuccess);
    ASSERT_LT(completion.wr_id, kDepth);
    ASSERT_TRUE(next_of_pair.contains(completion.queue_pair_number));
    EXPECT_EQ(to.word(8 * completion.wr_id), next_of_pair[completion.queue_pair_number]++);
    server().PostRecv(queue(), completion.wr_id, {to.Piece(8 * completion.wr_id, 8)});
    client().ExpectStatus(Status::kSuccess);
    --in_flight;
    ++received;
  }
}

TEST_P(SharedReceive, EmptyQueueIsNotReadyAndRecovers) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  const Buffer& to = server().Allocate(256);
  for (size_t i = 0; i < kPairs; ++i) client().Post(client_pair(i), Send(i, {}));
  client().ExpectNoCompletion();
  EXPECT_GE(client_pair(0).counters().receiver_not_ready, 1u);
  for (uint64_t id = 0; id < kPairs; ++id) server().PostRecv(queue(), id, {to.First(8)});
  std::set<uint64_t> receives, sends;
  for (size_t i = 0; i < kPairs; ++i) {
    receives.insert(server().ExpectStatus(Status::kSuccess).wr_id);
    sends.insert(client().ExpectStatus(Status::kSuccess).wr_id);
  }
  EXPECT_EQ(receives.size(), kPairs);
  EXPECT_EQ(sends.size(), kPairs);
}

// The success of a send says that a receive took it: with one receive, one of three may succeed.
TEST_P(SharedReceive, NoMoreSendsSucceedThanThereAreReceives) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  server().PostRecv(queue(), 1, {});
  for (size_t i = 0; i < kPairs; ++i) client().Post(client_pair(i), Send(i, {}));
  client().ExpectStatus(Status::kSuccess);
  server().ExpectStatus(Status::kSuccess);
  client().ExpectNoCompletion();
  server().ExpectNoCompletion();
}

// The receive that is next in the queue decides, and not a longer one behind it.
TEST_P(SharedReceive, TooLongForTheNextReceiveIsToldBothSides) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(128);
  server().PostRecv(queue(), 1, {to.First(8)});
  server().PostRecv(queue(), 2, {to.Piece(64, 64)});
  client().Post(client_pair(0), Send(1, {from.First(32)}));
  client().ExpectRefusedByPeer(client_pair(0), 1, Status::kRemoteInvalidRequestError);
  server().ExpectCompletion(1, Status::kLocalLengthError);
}

TEST_P(SharedReceive, FullQueueRefusesTheRest) {
  constexpr size_t kFarTooMany = 200;
  const Buffer& to = server().Allocate(64);
  const Pieces piece = {to.First(8)};
  std::vector<RecvWorkRequest> receives;
  for (uint64_t i = 0; i < kFarTooMany; ++i) receives.push_back({.wr_id = i, .sg_list = piece});
  size_t accepted = 0;
  EXPECT_THAT(queue().PostRecv(receives, &accepted), HasCode(StatusCode::kResourceExhausted));
  EXPECT_GE(accepted, kDepth);
  ASSERT_LT(accepted, kFarTooMany);
  // One used makes one free.
  client().Post(client_pair(0), Send(1, {}));
  client().ExpectSuccess(1);
  server().ExpectStatus(Status::kSuccess);
  EXPECT_THAT(queue().PostRecv(std::span(receives).first(1)), IsOk());
  size_t more = 7;
  EXPECT_THAT(queue().PostRecv(receives, &more), HasCode(StatusCode::kResourceExhausted));
  EXPECT_EQ(more, 0u);
}

TEST_P(SharedReceive, PairItselfTakesNoReceives) {
  const RecvWorkRequest receive{.wr_id = 1, .sg_list = {}};
  EXPECT_THAT(server_pair(0).PostRecv({&receive, 1}), HasCode(StatusCode::kFailedPrecondition));
}

TEST_P(SharedReceive, TooManyPiecesAreRefused) {
  const Buffer& to = server().Allocate(64);
  const Pieces pieces(can().recv_sge_max + 1, to.Piece(0, 1));
  const RecvWorkRequest receive{.wr_id = 1, .sg_list = pieces};
  EXPECT_THAT(queue().PostRecv({&receive, 1}), HasCode(StatusCode::kInvalidArgument));
}

TEST_P(SharedReceive, ScattersOverPieces) {
  if (can().recv_sge_max < 2) GTEST_SKIP() << "one scatter entry only";
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(256);
  FillPattern(from.bytes(0, 10), 1);
  FillPattern(from.bytes(10, 20), 2);
  server().PostRecv(queue(), 1, {to.Piece(0, 10), to.Piece(100, 50)});
  client().Post(client_pair(1), Send(1, {from.First(30)}));
  EXPECT_EQ(server().ExpectSuccess(1).byte_length, 30u);
  EXPECT_TRUE(HoldsPattern(to.bytes(0, 10), 1));
  EXPECT_TRUE(HoldsPattern(to.bytes(100, 20), 2));
}

TEST_P(SharedReceive, WriteWithImmTakesAReceiveOfIt) {
  REQUIRE_CAPABILITY(write_with_imm);
  const Buffer& from = client().Allocate(4096);
  const Buffer& to = server().Allocate(4096);
  FillPattern(from.bytes(), 1);
  server().PostRecv(queue(), 5, {});
  client().Post(client_pair(2), WriteWithImm(1, {from.All()}, to.Start(), 0xabcd));
  const WorkCompletion completion = server().ExpectSuccess(5, CompletionOpcode::kRecvWriteWithImm);
  EXPECT_EQ(completion.imm_data, 0xabcdu);
  EXPECT_EQ(completion.byte_length, 4096u);
  EXPECT_EQ(completion.queue_pair_number, server_pair(2).number());
  EXPECT_TRUE(HoldsPattern(to.bytes(), 1));
}

TEST_P(SharedReceive, TakesMessagesUpToItsLimit) {
  const size_t limit = std::min<uint64_t>(can().shared_receive_bytes_max, size_t{1} << 20);
  ASSERT_GE(limit, 1u);
  const Buffer& from = client().Allocate(limit);
  const Buffer& to = server().Allocate(limit);
  ExpectDelivery(0, from, limit, to, 1);
  ExpectDelivery(1, from, limit - 1, to, 2);
  const size_t user_limit = std::min<uint64_t>(limit, can().user_memory_receive_bytes_max);
  const Buffer& user = server().RegisterUserMemory(user_limit);
  ExpectDelivery(2, from, user_limit, user, 3);
}

TEST_P(SharedReceive, MoreThanItsLimitIsALengthError) {
  const uint64_t limit = can().shared_receive_bytes_max;
  if (limit >= can().message_bytes_max || limit > (uint64_t{1} << 30)) {
    GTEST_SKIP() << "no limit below that of any message";
  }
  const Buffer& from = client().Allocate(limit + 1);
  const Buffer& to = server().Allocate(limit + 1);
  server().PostRecv(queue(), 5, {to.All()});
  client().Post(client_pair(0), Send(1, {from.All()}));
  client().ExpectRefusedByPeer(client_pair(0), 1, Status::kRemoteInvalidRequestError);
  server().ExpectCompletion(5, Status::kLocalLengthError);
}

TEST_P(SharedReceive, LimitEventComesOnceWhenFewerAreLeft) {
  const Buffer& to = server().Allocate(64);
  for (uint64_t id = 0; id < 5; ++id) server().PostRecv(queue(), id, {to.First(8)});
  ASSERT_THAT(queue().ArmLimit(4), IsOk());
  const auto consume_one = [&] {
    client().Post(client_pair(0), Send(1, {}));
    client().ExpectSuccess(1);
    server().ExpectStatus(Status::kSuccess);
  };
  AsyncEvent event;
  consume_one();  // Four left: not fewer than four.
  loop().RunQuietly();
  EXPECT_FALSE(TakeAsyncEvent(&event));
  consume_one();  // Three.
  ASSERT_TRUE(loop().RunUntil([&] { return TakeAsyncEvent(&event); }));
  EXPECT_EQ(event.type, AsyncEvent::Type::kSharedReceiveQueueLimit);
  EXPECT_EQ(event.shared_receive, &queue());
  consume_one();  // Disarmed by the event.
  loop().RunQuietly();
  EXPECT_FALSE(TakeAsyncEvent(&event));
  // Armed anew it comes again.
  for (uint64_t id = 0; id < 3; ++id) server().PostRecv(queue(), id, {to.First(8)});
  ASSERT_THAT(queue().ArmLimit(5), IsOk());
  consume_one();
  ASSERT_TRUE(loop().RunUntil([&] { return TakeAsyncEvent(&event); }));
  EXPECT_EQ(event.type, AsyncEvent::Type::kSharedReceiveQueueLimit);
}

TEST_P(SharedReceive, LimitOfZeroDisarms) {
  for (uint64_t id = 0; id < 3; ++id) server().PostRecv(queue(), id, {});
  ASSERT_THAT(queue().ArmLimit(3), IsOk());
  ASSERT_THAT(queue().ArmLimit(0), IsOk());
  client().Post(client_pair(0), Send(1, {}));
  client().ExpectSuccess(1);
  server().ExpectStatus(Status::kSuccess);
  loop().RunQuietly();
  AsyncEvent event;
  EXPECT_FALSE(TakeAsyncEvent(&event));
}

TEST_P(SharedReceive, ErrorOfOnePairFlushesNoneOfItsReceives) {
  const Buffer& to = server().Allocate(64);
  for (uint64_t id = 0; id < 4; ++id) server().PostRecv(queue(), id, {to.First(8)});
  server_pair(0).MoveToError();
  server().ExpectNoCompletion();
  std::set<uint64_t> used;
  for (size_t i : {1, 2, 1, 2}) {
    client().Post(client_pair(i), Send(1, {}));
    client().ExpectSuccess(1);
    const WorkCompletion completion = server().ExpectStatus(Status::kSuccess);
    EXPECT_EQ(completion.queue_pair_number, server_pair(i).number());
    used.insert(completion.wr_id);
  }
  EXPECT_EQ(used.size(), 4u);
}

TEST_P(SharedReceive, LengthErrorUsesOneReceiveAndSparesTheOtherPairs) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t id = 0; id < 2; ++id) server().PostRecv(queue(), id, {to.First(8)});
  client().Post(client_pair(0), Send(1, {from.First(9)}));
  client().ExpectRefusedByPeer(client_pair(0), 1, Status::kRemoteInvalidRequestError);
  const WorkCompletion failed = server().ExpectStatus(Status::kLocalLengthError);
  EXPECT_EQ(failed.queue_pair_number, server_pair(0).number());
  server().ExpectState(server_pair(0), QueuePairState::kError);
  client().Post(client_pair(1), Send(1, {from.First(8)}));
  client().ExpectSuccess(1);
  const WorkCompletion good = server().ExpectStatus(Status::kSuccess);
  EXPECT_EQ(good.queue_pair_number, server_pair(1).number());
  EXPECT_NE(good.wr_id, failed.wr_id);
}

TEST_P(SharedReceive, OutlivesADestroyedPair) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t id = 0; id < 2; ++id) server().PostRecv(queue(), id, {to.First(8)});
  DestroyServerPair(0);
  client().ExpectEvent(ConnectionEvent::Type::kDisconnected, &client_pair(0));
  for (uint64_t id = 0; id < 2; ++id) {
    client().Post(client_pair(2), Send(1, {from.First(8)}));
    client().ExpectSuccess(1);
    server().ExpectStatus(Status::kSuccess);
  }
}

TEST_P(SharedReceive, LimitsAreNamed) {
  EXPECT_THAT(server().domain().CreateSharedReceiveQueue({.depth = can().queue_depth_max + 1}),
              HasCodeAndNames(StatusCode::kInvalidArgument, "depth"));
  EXPECT_THAT(
      server().domain().CreateSharedReceiveQueue({.depth = 8, .sge_max = can().recv_sge_max + 1}),
      HasCodeAndNames(StatusCode::kInvalidArgument, "sge_max"));
}

VERBENA_CONFORMANCE(SharedReceive);

}  // namespace
}  // namespace verbena::conformance
