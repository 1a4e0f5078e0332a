// SPDX-License-Identifier: Apache-2.0
//
// The error state: what is outstanding is flushed in order, so is what is posted later, and a
// peer's requests run out of retries. InfiniBand specification vol. 1, 10.3.1.5.

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;

class ErrorState : public ConnectedPair {};

TEST_P(ErrorState, FlushesReceivesInOrder) {
  const Buffer& to = server().Allocate(64);
  for (uint64_t i = 0; i < 20; ++i) server().PostRecv(i, {to.All()});
  server().pair().MoveToError();
  EXPECT_EQ(server().pair().state(), QueuePairState::kError);
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(server().ExpectCompletion(i, Status::kFlushed).queue_pair_number,
              server().pair().number());
  }
  server().ExpectNoCompletion();
}

TEST_P(ErrorState, FlushesSendsInOrderSignalledOrNot) {
  REQUIRE_CAPABILITY(receiver_not_ready);  // Holds them back.
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  client().Post({Send(1, {from.First(8)}), Send(2, {from.First(8)}).Unsignaled(),
                 Write(3, {from.First(8)}, to.Start()).Unsignaled(),
                 Read(4, {from.First(8)}, to.Start()), Send(5, {from.First(64)})});
  client().pair().MoveToError();
  client().ExpectFlushed({1, 2, 3, 4, 5});
  client().ExpectNoCompletion();
  EXPECT_TRUE(HoldsOnly(to.bytes(), 0));
}

TEST_P(ErrorState, FlushesWhatIsPostedLater) {
  const Buffer& ours = client().Allocate(64);
  const Buffer& theirs = server().Allocate(64);
  client().pair().MoveToError();
  client().PostRecv(10, {ours.All()});
  client().PostRecv(11, {});
  client().ExpectFlushed({10, 11});
  client().Post(Send(1, {ours.First(8)}));
  client().Post({Write(2, {ours.First(8)}, theirs.Start()).Unsignaled(), Send(3, {}).Unsignaled()});
  client().ExpectFlushed({1, 2, 3});
  client().PostRecv(12, {ours.All()});
  client().ExpectFlushed({12});
  client().ExpectNoCompletion();
}

TEST_P(ErrorState, IsIdempotent) {
  server().PostRecv(1, {});
  server().pair().MoveToError();
  server().pair().MoveToError();
  server().ExpectFlushed({1});
  server().pair().MoveToError();
  server().ExpectNoCompletion();
}

TEST_P(ErrorState, KeepsWhatHadSucceededBefore) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(256);
  FillPattern(from.bytes(), 1);
  for (uint64_t i = 0; i < 4; ++i) server().PostRecv(i, {to.Piece(64 * i, 64)});
  // The server's thread looks at nothing while two messages arrive.
  Loop alone(subject());
  client().MoveTo(alone);
  client().Post({Send(1, {from.First(8)}), Send(2, {from.First(60)})});
  client().ExpectSuccess(1);
  client().ExpectSuccess(2);
  server().pair().MoveToError();
  // One at a time, so that a poll ends between what succeeded and what is flushed.
  std::vector<WorkCompletion> entries(4);
  size_t found = 0;
  alone.RunUntil([&] {
    found += server().queue().Poll(std::span(entries).subspan(found, 1));
    return found == entries.size();
  });
  ASSERT_EQ(found, entries.size());
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].wr_id, i);
    EXPECT_EQ(entries[i].status, i < 2 ? Status::kSuccess : Status::kFlushed) << i;
  }
  EXPECT_EQ(entries[1].byte_length, 60u);
  EXPECT_TRUE(HoldsPattern(to.bytes(64, 60), 1));
  client().MoveTo(loop());
}

TEST_P(ErrorState, FloodOfPostsInItLosesNothing) {
  client().pair().MoveToError();
  uint64_t posted = 0;
  while (posted < 1000) {
    size_t accepted = 0;
    const absl::Status status = client().TryPost({Send(posted, {})}, &accepted);
    posted += accepted;
    if (!status.ok()) {
      EXPECT_THAT(status, HasCode(absl::StatusCode::kResourceExhausted));
      break;
    }
  }
  EXPECT_GE(posted, 64u);
  for (uint64_t i = 0; i < posted; ++i) {
    client().ExpectCompletion(i, Status::kFlushed);
    if (HasFailure()) return;
  }
  client().ExpectNoCompletion();
  // There is room again.
  client().Post(Send(2000, {}));
  client().ExpectFlushed({2000});
}

class PeerInError : public ConnectedPair {
 protected:
  // Whatever we ask of a pair that is in error finds no answer.
  void ExpectRetryExceeded(const std::function<Request()>& make_request) {
    server().pair().MoveToError();
    client().PostRecv(50, {});
    client().Post({make_request(), Send(100, {})});
    client().ExpectCompletion(1, Status::kRetryExceeded);
    // Receives and sends are flushed, with no order among each other.
    const uint64_t first = client().ExpectStatus(Status::kFlushed).wr_id;
    const uint64_t second = client().ExpectStatus(Status::kFlushed).wr_id;
    EXPECT_EQ(first + second, 50u + 100u);
    client().ExpectState(QueuePairState::kError);
  }
};

TEST_P(PeerInError, IsNotNoticedUntilSomethingIsSent) {
  server().pair().MoveToError();
  client().ExpectNoEvent();
  EXPECT_EQ(client().pair().state(), QueuePairState::kReadyToSend);
}

TEST_P(PeerInError, SendExceedsItsRetries) {
  REQUIRE_CAPABILITY(error_tells_sender);
  server().PostRecv(9, {});
  ExpectRetryExceeded([&] { return Send(1, {client().Allocate(64).First(8)}); });
}

TEST_P(PeerInError, LargeSendExceedsItsRetries) {
  REQUIRE_CAPABILITY(error_tells_sender);
  server().PostRecv(9, {server().Allocate(1 << 20).All()});
  ExpectRetryExceeded([&] { return Send(1, {client().Allocate(1 << 20).All()}); });
}

TEST_P(PeerInError, WriteExceedsItsRetriesAndChangesNothing) {
  REQUIRE_CAPABILITY(error_tells_sender);
  const Buffer& from = client().Allocate(4096);
  const Buffer& to = server().Allocate(4096);
  FillPattern(from.bytes(), 1);
  ExpectRetryExceeded([&] { return Write(1, {from.All()}, to.Start()); });
  EXPECT_TRUE(HoldsOnly(to.bytes(), 0));
}

TEST_P(PeerInError, ReadExceedsItsRetries) {
  REQUIRE_CAPABILITY(error_tells_sender);
  const Buffer& into = client().Allocate(4096);
  const Buffer& from = server().Allocate(4096);
  FillPattern(from.bytes(), 1);
  ExpectRetryExceeded([&] { return Read(1, {into.All()}, from.Start()); });
  EXPECT_TRUE(HoldsOnly(into.bytes(), 0));
}

TEST_P(PeerInError, AtomicExceedsItsRetriesAndChangesNothing) {
  REQUIRE_CAPABILITY(error_tells_sender);
  REQUIRE_CAPABILITY(atomics);
  const Buffer& target = server().Allocate(64, kAccessLocalWrite | kAccessRemoteAtomic);
  ExpectRetryExceeded(
      [&] { return FetchAndAdd(1, client().Allocate(64).First(8), target.Start(), 1); });
  EXPECT_EQ(target.word(), 0u);
}

TEST_P(PeerInError, EndsASendThatWaitsForAReceive) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  client().Post({Send(1, {}), Send(2, {})});
  client().ExpectNoCompletion();
  server().pair().MoveToError();
  client().ExpectCompletion(1, Status::kRetryExceeded);
  client().ExpectFlushed({2});
}

TEST_P(PeerInError, EmptySendExceedsItsRetries) {
  REQUIRE_CAPABILITY(error_tells_sender);
  ExpectRetryExceeded([&] { return Send(1, {}).Unsignaled(); });
}

class Unconnected : public TwoParties {};

TEST_P(Unconnected, PairFlushesItsReceives) {
  client().MakePair(client().DefaultOptions());
  client().PostRecv(1, {});
  client().PostRecv(2, {});
  client().pair().MoveToError();
  client().ExpectFlushed({1, 2});
  EXPECT_EQ(client().pair().state(), QueuePairState::kError);
  client().PostRecv(3, {});
  client().ExpectFlushed({3});
}

VERBENA_CONFORMANCE(ErrorState);
VERBENA_CONFORMANCE(PeerInError);
VERBENA_CONFORMANCE(Unconnected);

}  // namespace
}  // namespace verbena::conformance
