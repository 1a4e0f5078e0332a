// SPDX-License-Identifier: Apache-2.0
//
// Full queues: what is refused, how many were accepted before it, and that nothing is lost.

#include <numeric>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using absl::StatusCode;

// A device may make its queues deeper than asked for (ibv_create_qp(3)); never this much.
constexpr size_t kFarTooMany = 300;
constexpr uint32_t kDepth = 8;

class QueueLimits : public TwoParties {
 protected:
  void ConnectWithDepths(uint32_t send_depth, uint32_t recv_depth) {
    PairOptions options = Defaults();
    options.client_pair.send_depth = send_depth;
    options.server_pair.recv_depth = recv_depth;
    Connect(options);
  }

  std::vector<Request> Sends(size_t count, const Buffer& from) {
    std::vector<Request> sends;
    for (size_t i = 0; i < count; ++i) sends.push_back(Send(i, {from.Piece(8 * i, 8)}));
    return sends;
  }
};

TEST_P(QueueLimits, FullSendQueueRefusesTheRestAndRecovers) {
  REQUIRE_CAPABILITY(receiver_not_ready);  // Holds the sends back until a receive is posted.
  ConnectWithDepths(kDepth, 512);
  const Buffer& from = client().Allocate(8 * kFarTooMany);
  const Buffer& to = server().Allocate(8 * kFarTooMany);
  std::iota(&from.word(), &from.word() + kFarTooMany, uint64_t{0});
  const std::vector<Request> sends = Sends(kFarTooMany, from);
  size_t accepted = 0;
  EXPECT_THAT(client().TryPost(sends, &accepted), HasCode(StatusCode::kResourceExhausted));
  EXPECT_GE(accepted, kDepth);
  ASSERT_LT(accepted, kFarTooMany);
  size_t more = 7;
  EXPECT_THAT(client().TryPost({sends[accepted]}, &more), HasCode(StatusCode::kResourceExhausted));
  EXPECT_EQ(more, 0u);

  for (size_t i = 0; i < kFarTooMany; ++i) server().PostRecv(i, {to.Piece(8 * i, 8)});
  // Poll, then post the rest again, until all are through, in order and each once.
  size_t posted = accepted;
  for (size_t done = 0; done < kFarTooMany; ++done) {
    client().ExpectSuccess(done, CompletionOpcode::kSend);
    if (posted < kFarTooMany) {
      const std::vector<Request> rest(sends.begin() + static_cast<ptrdiff_t>(posted), sends.end());
      client().TryPost(rest, &accepted).IgnoreError();
      posted += accepted;
    }
    server().ExpectReceived(done, 8);
    ASSERT_EQ(to.word(8 * done), done);
    if (HasFailure()) return;
  }
}

TEST_P(QueueLimits, UnsignalledSendsTakePlacesToo) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  ConnectWithDepths(kDepth, 512);
  const Buffer& from = client().Allocate(8 * kFarTooMany);
  const Buffer& to = server().Allocate(64);
  std::vector<Request> sends = Sends(kFarTooMany, from);
  for (Request& send : sends) send.Unsignaled();
  size_t accepted = 0;
  EXPECT_THAT(client().TryPost(sends, &accepted), HasCode(StatusCode::kResourceExhausted));
  EXPECT_GE(accepted, kDepth);
  ASSERT_LT(accepted, kFarTooMany);
  for (size_t i = 0; i < accepted; ++i) server().PostRecv(i, {to.All()});
  for (size_t i = 0; i < accepted; ++i) server().ExpectReceived(i, 8);
  client().ExpectNoCompletion();
}

// However many are accepted without a poll, every one of them has its completion in the end: the
// completion queue has room for each, since it was sized for the depth of the send queue.
TEST_P(QueueLimits, EveryAcceptedSendCompletesThoughNobodyPolls) {
  ConnectWithDepths(kDepth, 512);
  const Buffer& from = client().Allocate(8 * kFarTooMany);
  const Buffer& to = server().Allocate(64);
  const std::vector<Request> sends = Sends(kFarTooMany, from);
  for (size_t i = 0; i < kFarTooMany; ++i) server().PostRecv(i, {to.All()});
  Loop alone(subject());
  server().MoveTo(alone);
  size_t posted = 0;
  for (const Request& send : sends) {
    size_t accepted = 0;
    if (!client().TryPost({send}, &accepted).ok()) break;
    ++posted;
    server().ExpectReceived(send.work().wr_id, 8);
  }
  EXPECT_GE(posted, kDepth);
  server().MoveTo(loop());
  for (size_t i = 0; i < posted; ++i) client().ExpectSuccess(i);
  client().ExpectNoCompletion();
}

TEST_P(QueueLimits, AFullCompletionQueueHoldsEveryEntry) {
  const auto queue = Must(device().CreateCompletionQueue(2 * kDepth, nullptr));
  PairOptions options = Defaults();
  options.server_pair.recv_queue = queue.get();
  options.server_pair.recv_depth = queue->depth();
  Connect(options);
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  const uint32_t count = queue->depth();
  for (uint32_t i = 0; i < count; ++i) server().PostRecv(i, {to.All()});
  for (uint32_t i = 0; i < count; ++i) {
    client().Post(Send(i, {from.First(8)}));
    client().ExpectSuccess(i);
  }
  std::vector<WorkCompletion> entries(count + 1);
  size_t found = 0;
  loop().RunUntil([&] {
    found += queue->Poll(std::span(entries).subspan(found));
    return found == count;
  });
  ASSERT_EQ(found, count);
  for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(entries[i].wr_id, i);
  server().DestroyPair();
}

TEST_P(QueueLimits, FullReceiveQueueRefusesTheRest) {
  ConnectWithDepths(64, kDepth);
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(8 * kFarTooMany);
  Pieces pieces;
  for (size_t i = 0; i < kFarTooMany; ++i) pieces.push_back(to.Piece(8 * i, 8));
  std::vector<RecvWorkRequest> receives;
  for (size_t i = 0; i < kFarTooMany; ++i) {
    receives.push_back({.wr_id = i, .sg_list = std::span(pieces).subspan(i, 1)});
  }
  size_t accepted = 0;
  EXPECT_THAT(server().pair().PostRecv(receives, &accepted),
              HasCode(StatusCode::kResourceExhausted));
  EXPECT_GE(accepted, kDepth);
  ASSERT_LT(accepted, kFarTooMany);
  size_t more = 7;
  EXPECT_THAT(server().pair().PostRecv(receives, &more), HasCode(StatusCode::kResourceExhausted));
  EXPECT_EQ(more, 0u);

  // Those before it stay posted; one place is free when one is used.
  client().Post(Send(1, {from.First(8)}));
  client().ExpectSuccess(1);
  server().ExpectReceived(0, 8);
  server().PostRecv(accepted, {to.First(8)});
  for (size_t i = 1; i <= accepted; ++i) {
    client().Post(Send(i, {from.First(8)}));
    client().ExpectSuccess(i);
    server().ExpectReceived(i, 8);
  }
}

TEST_P(QueueLimits, TooManyPiecesAreRefused) {
  PairOptions options = Defaults();
  options.client_pair.send_sge_max = 1;
  options.server_pair.recv_sge_max = 1;
  Connect(options);
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  // More than any device would round up to.
  const Pieces too_many_sends(can().send_sge_max + 1, from.Piece(0, 1));
  Pieces too_many_receives(can().recv_sge_max + 1, to.Piece(0, 1));
  size_t accepted = 7;
  EXPECT_THAT(client().TryPost({Send(1, too_many_sends)}, &accepted),
              HasCode(StatusCode::kInvalidArgument));
  EXPECT_EQ(accepted, 0u);
  const RecvWorkRequest receive{.wr_id = 1, .sg_list = too_many_receives};
  accepted = 7;
  EXPECT_THAT(server().pair().PostRecv({&receive, 1}, &accepted),
              HasCode(StatusCode::kInvalidArgument));
  EXPECT_EQ(accepted, 0u);
}

TEST_P(QueueLimits, ABatchStopsAtTheFirstRefusedRequest) {
  ConnectWithDepths(64, 64);
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t i = 0; i < 3; ++i) server().PostRecv(10 + i, {to.All()});
  const Pieces too_many(can().send_sge_max + 1, from.Piece(0, 1));
  size_t accepted = 7;
  EXPECT_THAT(client().TryPost({Send(1, {from.First(1)}), Send(2, {from.First(2)}),
                                Send(3, too_many), Send(4, {from.First(4)})},
                               &accepted),
              HasCode(StatusCode::kInvalidArgument));
  EXPECT_EQ(accepted, 2u);
  client().ExpectSuccess(1);
  client().ExpectSuccess(2);
  server().ExpectReceived(10, 1);
  server().ExpectReceived(11, 2);
  server().ExpectNoCompletion();
  client().ExpectNoCompletion();
}

TEST_P(QueueLimits, AnEmptyBatchIsNothing) {
  ConnectWithDepths(64, 64);
  size_t accepted = 7;
  EXPECT_THAT(client().TryPost(std::vector<Request>{}, &accepted), IsOk());
  EXPECT_EQ(accepted, 0u);
  accepted = 7;
  EXPECT_THAT(client().pair().PostRecv({}, &accepted), IsOk());
  EXPECT_EQ(accepted, 0u);
  client().ExpectNoCompletion();
}

// Wherever the length is checked, a message over the device's limit fails and does no harm.
TEST_P(QueueLimits, MessageOverTheLimitFails) {
  const uint64_t limit = can().message_bytes_max;
  if (limit >= 0xffffffffu) GTEST_SKIP() << "no entry is longer than the limit of " << limit;
  ConnectWithDepths(64, 64);
  auto memory = client().domain().AllocateMemory(limit + 1, kAccessLocalWrite);
  if (!memory.ok()) GTEST_SKIP() << "no memory for so long a message: " << memory.status();
  const Buffer from(*std::move(memory));
  const Buffer& to = server().Allocate(64);
  const absl::Status status = client().TryPost(Write(1, {from.All()}, to.Start()));
  if (status.ok()) {
    client().ExpectCompletion(1, CompletionStatus::kLocalLengthError);
  } else {
    EXPECT_THAT(status, HasCode(StatusCode::kInvalidArgument));
  }
  EXPECT_TRUE(HoldsOnly(to.bytes(), 0));
  client().DestroyPair();
}

TEST_P(QueueLimits, EntriesOfADestroyedPairAreGone) {
  ConnectWithDepths(64, 64);
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  Loop alone(subject());
  server().MoveTo(alone);
  for (uint64_t i = 0; i < 4; ++i) {
    server().PostRecv(i, {to.All()});
    client().Post(Send(i, {from.First(8)}));
  }
  for (uint64_t i = 0; i < 4; ++i) server().ExpectReceived(i, 8);
  // Four send completions wait unpolled. Those of another pair on the queue stay.
  server().MoveTo(loop());
  client().DestroyPair();
  client().ExpectNoCompletion();
  server().ExpectEvent(ConnectionEvent::Type::kDisconnected, &server().pair());
  ConnectWithDepths(64, 64);
  server().PostRecv(9, {to.All()});
  client().Post(Send(8, {from.First(8)}));
  client().ExpectSuccess(8);
  server().ExpectReceived(9, 8);
}

VERBENA_CONFORMANCE(QueueLimits);

}  // namespace
}  // namespace verbena::conformance
