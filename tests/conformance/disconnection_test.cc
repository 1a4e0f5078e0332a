// SPDX-License-Identifier: Apache-2.0
//
// The end of a connection: Disconnect, destruction, and what both sides learn of it.

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;
using Type = ConnectionEvent::Type;

class Disconnecting : public ConnectedPair {};

TEST_P(Disconnecting, TellsThePeerAndFlushesBothSides) {
  for (uint64_t i = 0; i < 3; ++i) {
    client().PostRecv(10 + i, {});
    server().PostRecv(20 + i, {});
  }
  client().manager().Disconnect(client().pair());
  EXPECT_EQ(client().pair().state(), QueuePairState::kError);
  client().ExpectFlushed({10, 11, 12});
  server().ExpectEvent(Type::kDisconnected, &server().pair());
  EXPECT_EQ(server().pair().state(), QueuePairState::kError);
  server().ExpectFlushed({20, 21, 22});
  server().ExpectNoEvent();
}

TEST_P(Disconnecting, IsNoEventForWhoAskedForIt) {
  client().manager().Disconnect(client().pair());
  server().ExpectEvent(Type::kDisconnected);
  client().ExpectNoEvent();
}

TEST_P(Disconnecting, TwiceIsHarmless) {
  client().manager().Disconnect(client().pair());
  client().manager().Disconnect(client().pair());
  server().ExpectEvent(Type::kDisconnected);
  server().manager().Disconnect(server().pair());
  server().ExpectNoEvent();
  client().ExpectNoEvent();
}

TEST_P(Disconnecting, WorksFromTheAcceptingSide) {
  client().PostRecv(1, {});
  server().manager().Disconnect(server().pair());
  client().ExpectEvent(Type::kDisconnected, &client().pair());
  client().ExpectFlushed({1});
}

TEST_P(Disconnecting, LaterPostsAreFlushed) {
  server().manager().Disconnect(server().pair());
  client().ExpectEvent(Type::kDisconnected);
  client().Post(Send(1, {}));
  client().PostRecv(2, {});
  EXPECT_EQ(
      client().ExpectStatus(Status::kFlushed).wr_id + client().ExpectStatus(Status::kFlushed).wr_id,
      3u);
}

TEST_P(Disconnecting, EndsASendThatWaitsForAReceive) {
  REQUIRE_CAPABILITY(receiver_not_ready);
  client().Post({Send(1, {}), Send(2, {}).Unsignaled()});
  client().ExpectNoCompletion();
  server().manager().Disconnect(server().pair());
  // The retry may meet the peer's error state before the news of its leaving arrives.
  const WorkCompletion first = client().NextCompletion();
  EXPECT_EQ(first.wr_id, 1u);
  EXPECT_TRUE(first.status == Status::kFlushed || first.status == Status::kRetryExceeded)
      << CompletionStatusName(first.status);
  client().ExpectFlushed({2});
  client().ExpectEvent(Type::kDisconnected, &client().pair());
}

TEST_P(Disconnecting, MessagesThatWereAcknowledgedAreNotLost) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  for (uint64_t i = 0; i < 5; ++i) server().PostRecv(10 + i, {to.All()});
  Loop alone(subject());
  client().MoveTo(alone);  // Nobody polls the server meanwhile.
  for (uint64_t i = 0; i < 4; ++i) client().Post(Send(i, {from.First(8)}));
  for (uint64_t i = 0; i < 4; ++i) client().ExpectSuccess(i);
  client().manager().Disconnect(client().pair());
  client().MoveTo(loop());
  for (uint64_t i = 0; i < 4; ++i) server().ExpectReceived(10 + i, 8);
  server().ExpectFlushed({14});
  server().ExpectEvent(Type::kDisconnected);
}

TEST_P(Disconnecting, DestroyedPairDisconnects) {
  server().PostRecv(1, {});
  client().DestroyPair();
  server().ExpectEvent(Type::kDisconnected, &server().pair());
  server().ExpectFlushed({1});
  EXPECT_EQ(server().pair().state(), QueuePairState::kError);
}

TEST_P(Disconnecting, DestroyedPairGetsNoEvent) {
  // The news is on its way, or has arrived untaken, when the pair goes.
  Loop alone(subject());
  client().MoveTo(alone);
  server().manager().Disconnect(server().pair());
  loop().RunQuietly();
  client().DestroyPair();
  client().MoveTo(loop());
  client().ExpectNoEvent();
  client().ExpectNoCompletion();
}

TEST_P(Disconnecting, PairsDestroyedTogetherLeaveNothing) {
  client().PostRecv(1, {});
  server().PostRecv(1, {});
  client().DestroyPair();
  server().DestroyPair();
  client().ExpectNoEvent();
  server().ExpectNoEvent();
  client().ExpectNoCompletion();
  server().ExpectNoCompletion();
}

TEST_P(Disconnecting, WholeClientGone) {
  server().PostRecv(1, {});
  DestroyClient();
  server().ExpectEvent(Type::kDisconnected, &server().pair());
  server().ExpectFlushed({1});
}

TEST_P(Disconnecting, LeavesOtherConnectionsAlone) {
  const Connection other = ConnectOneMore(client(), server(), FreshAddress());
  client().manager().Disconnect(client().pair());
  server().ExpectEvent(Type::kDisconnected, &server().pair());
  EXPECT_EQ(other.client->state(), QueuePairState::kReadyToSend);
  server().PostRecv(*other.server, 5, {});
  client().Post(*other.client, Send(6, {}));
  client().ExpectSuccess(6);
  server().ExpectReceived(5, 0);
}

TEST_P(Disconnecting, PeersMemoryIsClosedAfterwards) {
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  FillPattern(from.bytes(), 1);
  server().manager().Disconnect(server().pair());
  client().Post(Write(1, {from.All()}, to.Start()));
  EXPECT_NE(client().NextCompletion().status, Status::kSuccess);
  EXPECT_TRUE(HoldsOnly(to.bytes(), 0));
}

TEST_P(Disconnecting, ManyRoundsLeakNothingThatIsLimited) {
  for (int round = 0; round < 100; ++round) {
    const Connection connection = ConnectOneMore(client(), server(), FreshAddress());
    server().PostRecv(*connection.server, 1, {});
    client().Post(*connection.client, Send(2, {}));
    client().ExpectSuccess(2);
    server().ExpectReceived(1, 0);
    if (HasFailure()) return;
    // The server's pair goes first half of the time.
    if (round % 2 == 0) {
      client().manager().Disconnect(*connection.client);
      server().ExpectEvent(Type::kDisconnected, connection.server.get());
    } else {
      server().manager().Disconnect(*connection.server);
      client().ExpectEvent(Type::kDisconnected, connection.client.get());
    }
  }
}

VERBENA_CONFORMANCE(Disconnecting);

}  // namespace
}  // namespace verbena::conformance
