// SPDX-License-Identifier: Apache-2.0
//
// Connecting: private data, refusals, addresses, timeouts. rdma_cm(7).

#include <poll.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using absl::StatusCode;
using Type = ConnectionEvent::Type;

ConnectOptions WithTimeout(int timeout_ms) {
  ConnectOptions options;
  options.timeout = std::chrono::milliseconds(timeout_ms);
  return options;
}

class Connecting : public TwoParties {
 protected:
  void SetUp() override {
    TwoParties::SetUp();
    if (IsSkipped()) return;
    client().MakePair(client().DefaultOptions());
    server().MakePair(server().DefaultOptions());
  }
  std::unique_ptr<Listener> Listen() { return Must(server().manager().Listen(FreshAddress())); }
  void Ask(const Address& address, const ConnectOptions& options = {}) {
    ASSERT_THAT(client().manager().Connect(client().pair(), address, options), IsOk());
  }
  std::unique_ptr<ConnectionRequest> ExpectRequest() {
    return server().ExpectEvent(Type::kConnectRequest).request;
  }
  void Accept(std::unique_ptr<ConnectionRequest> request, const ConnectOptions& options = {}) {
    ASSERT_THAT(server().manager().Accept(std::move(request), server().pair(), options), IsOk());
  }
  void ExpectMessagePasses() {
    server().PostRecv(2, {});
    client().Post(Send(1, {}));
    client().ExpectSuccess(1);
    server().ExpectReceived(2, 0);
  }
  // Sleeps on a descriptor alone, without a poll of the manager that could push it on.
  static bool SleepUntilReadable(int fd) {
    pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, static_cast<int>(kHangBound.count())) == 1;
  }
};

TEST_P(Connecting, CarriesPrivateDataBothWays) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{33}, kPrivateDataBytesMax}) {
    SCOPED_TRACE(size);
    client().MakePair(client().DefaultOptions());
    server().MakePair(server().DefaultOptions());
    const PrivateData question = MakePrivateData(size, 1);
    const PrivateData answer = MakePrivateData(kPrivateDataBytesMax - size, 2);
    const auto listener = Listen();
    Ask(listener->address(), {.private_data = question});
    auto request = ExpectRequest();
    EXPECT_TRUE(IsPaddedCopy(request->private_data(), question));
    Accept(std::move(request), {.private_data = answer});
    const ConnectionEvent established = client().ExpectEvent(Type::kEstablished, &client().pair());
    EXPECT_TRUE(IsPaddedCopy(established.private_data, answer));
    server().ExpectEvent(Type::kEstablished, &server().pair());
    ExpectMessagePasses();
    // Make room for the next round: each end hears of the other's leaving or is gone itself.
    client().DestroyPair();
    server().ExpectEvent(Type::kDisconnected, &server().pair());
  }
}

TEST_P(Connecting, MovesBothPairsFromInitToReady) {
  EXPECT_EQ(client().pair().state(), QueuePairState::kInit);
  Join(client(), client().pair(), server(), server().pair(), FreshAddress());
  EXPECT_EQ(client().pair().state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(server().pair().state(), QueuePairState::kReadyToSend);
  client().ExpectNoEvent();
  server().ExpectNoEvent();
  ExpectMessagePasses();
}

TEST_P(Connecting, AcceptorMaySendAsSoonAsItIsEstablished) {
  const auto listener = Listen();
  const Buffer& from = server().Allocate(64);
  const Buffer& to = client().Allocate(64);
  client().PostRecv(2, {to.All()});
  Ask(listener->address());
  Accept(ExpectRequest());
  server().ExpectEvent(Type::kEstablished, &server().pair());
  server().Post(Send(1, {from.First(30)}));
  server().ExpectSuccess(1);
  client().ExpectReceived(2, 30);
}

TEST_P(Connecting, RejectionCarriesItsReason) {
  const auto listener = Listen();
  const PrivateData reason = MakePrivateData(20, 3);
  Ask(listener->address());
  ASSERT_THAT(server().manager().Reject(ExpectRequest(), reason), IsOk());
  const ConnectionEvent event = client().ExpectEvent(Type::kRejected, &client().pair());
  EXPECT_TRUE(IsPaddedCopy(event.private_data, reason));
  EXPECT_EQ(event.request, nullptr);
  client().ExpectNoEvent();
  server().ExpectNoEvent();
}

TEST_P(Connecting, DroppedRequestIsRejected) {
  const auto listener = Listen();
  Ask(listener->address());
  ExpectRequest().reset();
  client().ExpectEvent(Type::kRejected, &client().pair());
  client().ExpectNoEvent();
}

TEST_P(Connecting, ListenerServesOnAfterARejection) {
  const auto listener = Listen();
  Ask(listener->address());
  ExpectRequest().reset();
  client().ExpectEvent(Type::kRejected);
  client().MakePair(client().DefaultOptions());
  Ask(listener->address());
  Accept(ExpectRequest());
  client().ExpectEvent(Type::kEstablished, &client().pair());
  server().ExpectEvent(Type::kEstablished, &server().pair());
  ExpectMessagePasses();
}

TEST_P(Connecting, NobodyListensIsARejectionWithAStatus) {
  Ask(FreshAddress());
  const ConnectionEvent event = client().ExpectEvent(Type::kRejected, &client().pair());
  EXPECT_FALSE(event.status.ok());
  client().ExpectNoEvent();
}

TEST_P(Connecting, AddressInUseIsToldAndFreedWithItsListener) {
  auto listener = Listen();
  const Address address = listener->address();
  EXPECT_THAT(server().manager().Listen(address), HasCode(StatusCode::kAlreadyExists));
  EXPECT_THAT(client().manager().Listen(address), HasCode(StatusCode::kAlreadyExists));
  const auto other = Must(server().manager().Listen(FreshAddress()));
  EXPECT_FALSE(other->address() == address);
  listener.reset();
  const auto again = client().manager().Listen(address);
  EXPECT_THAT(again, IsOk());
}

TEST_P(Connecting, FreedAddressRejects) {
  auto listener = Listen();
  const Address address = listener->address();
  listener.reset();
  Ask(address);
  client().ExpectEvent(Type::kRejected, &client().pair());
}

TEST_P(Connecting, ListenerThatGoesBeforeItsRequestIsTakenConnectsNobody) {
  auto listener = Listen();
  Loop alone(subject());
  client().MoveTo(alone);  // So that the loop takes no event of the server.
  Ask(listener->address(), WithTimeout(300));
  listener.reset();
  const ConnectionEvent event = client().NextEvent();
  EXPECT_TRUE(event.type == Type::kRejected || event.type == Type::kUnreachable)
      << testing::PrintToString(event.type);
  client().ExpectNoEvent();
  client().MoveTo(loop());
}

TEST_P(Connecting, EstablishedConnectionOutlivesItsListener) {
  auto listener = Listen();
  Ask(listener->address());
  Accept(ExpectRequest());
  client().ExpectEvent(Type::kEstablished);
  server().ExpectEvent(Type::kEstablished);
  listener.reset();
  ExpectMessagePasses();
  client().ExpectNoEvent();
  server().ExpectNoEvent();
}

TEST_P(Connecting, ForeignSchemesAreRefused) {
  for (const char* text : {"shm:somewhere", "rdma:127.0.0.1:7471", "tcp:127.0.0.1:7471"}) {
    const Address address = Must(Address::Parse(text));
    if (device().ServesScheme(address.scheme)) continue;
    EXPECT_THAT(server().manager().Listen(address), HasCode(StatusCode::kInvalidArgument)) << text;
    EXPECT_FALSE(client().manager().Connect(client().pair(), address, {}).ok()) << text;
  }
}

TEST_P(Connecting, ListenerThatNeverAnswersIsUnreachable) {
  const auto listener = Listen();
  Ask(listener->address(), WithTimeout(100));
  const auto request = ExpectRequest();  // Kept, and never answered.
  client().ExpectEvent(Type::kUnreachable, &client().pair());
  client().ExpectNoEvent();
}

TEST_P(Connecting, AcceptingTooLateDoesNotConnect) {
  const auto listener = Listen();
  Ask(listener->address(), WithTimeout(50));
  auto request = ExpectRequest();
  client().ExpectEvent(Type::kUnreachable, &client().pair());
  client().DestroyPair();
  if (server().manager().Accept(std::move(request), server().pair(), {}).ok()) {
    server().ExpectEvent(Type::kDisconnected, &server().pair());
  }
  server().ExpectNoEvent();
}

TEST_P(Connecting, RequestMayBeAcceptedOnAnotherManager) {
  Party worker("worker", device(), loop());
  worker.MakePair(worker.DefaultOptions());
  const auto listener = Listen();
  Ask(listener->address());
  Must(worker.manager().Accept(ExpectRequest(), worker.pair(), {}));
  client().ExpectEvent(Type::kEstablished, &client().pair());
  worker.ExpectEvent(Type::kEstablished, &worker.pair());
  worker.PostRecv(2, {});
  client().Post(Send(1, {}));
  worker.ExpectReceived(2, 0);
  client().ExpectSuccess(1);
  client().manager().Disconnect(client().pair());
  worker.ExpectEvent(Type::kDisconnected, &worker.pair());
  server().ExpectNoEvent();
}

TEST_P(Connecting, DestroyedPairCancels) {
  const auto listener = Listen();
  Ask(listener->address());
  client().DestroyPair();
  // The request may have gone out before. Who accepts it finds nobody there.
  loop().RunQuietly();
  if (server().has_event()) {
    const absl::Status status = server().manager().Accept(ExpectRequest(), server().pair(), {});
    if (status.ok()) {
      server().ExpectState(QueuePairState::kError);
    } else {
      EXPECT_THAT(status, HasCode(absl::StatusCode::kCancelled));
    }
  }
  client().ExpectNoEvent();
}

TEST_P(Connecting, DestroyedPairCancelsBeforeItsEventIsTaken) {
  const auto listener = Listen();
  Loop alone(subject());
  client().MoveTo(alone);  // So that the loop takes none of the client's events.
  Ask(listener->address());
  Accept(ExpectRequest());
  loop().RunQuietly();
  client().DestroyPair();
  client().MoveTo(loop());
  client().ExpectNoEvent();
}

TEST_P(Connecting, ManyAtOnceEachGetTheirOwn) {
  constexpr size_t kCount = 32;
  QueuePairOptions small = client().DefaultOptions();
  small.send_depth = small.recv_depth = 4;
  std::vector<std::unique_ptr<QueuePair>> ours, theirs;
  std::map<const QueuePair*, size_t> index_of;
  const auto listener = Listen();
  for (size_t i = 0; i < kCount; ++i) {
    ours.push_back(client().NewQueuePair(small));
    index_of[ours.back().get()] = i;
    Must(client().manager().Connect(*ours[i], listener->address(),
                                    {.private_data = MakePrivateData(32, 100 + i)}));
  }
  QueuePairOptions accepted = small;
  accepted.send_queue = accepted.recv_queue = &server().queue();
  std::map<const QueuePair*, size_t> accepted_as;
  for (size_t n = 0; n < kCount; ++n) {
    auto request = ExpectRequest();
    size_t i = 0;
    while (i < kCount && !IsPaddedCopy(request->private_data(), MakePrivateData(32, 100 + i))) ++i;
    ASSERT_LT(i, kCount) << "private data that nobody sent";
    theirs.push_back(server().NewQueuePair(accepted));
    EXPECT_TRUE(accepted_as.emplace(theirs.back().get(), i).second);
    server().PostRecv(*theirs.back(), 1000 + i, {});
    Must(server().manager().Accept(std::move(request), *theirs.back(),
                                   {.private_data = MakePrivateData(16, 200 + i)}));
  }
  for (size_t n = 0; n < kCount; ++n) {
    const ConnectionEvent event = client().ExpectEvent(Type::kEstablished);
    ASSERT_TRUE(index_of.contains(event.queue_pair));
    const size_t i = index_of[event.queue_pair];
    EXPECT_TRUE(IsPaddedCopy(event.private_data, MakePrivateData(16, 200 + i))) << i;
    index_of.erase(event.queue_pair);
    server().ExpectEvent(Type::kEstablished);
  }
  // Each pair really leads to the one that took its request.
  for (size_t i = 0; i < kCount; ++i) {
    client().Post(*ours[i], Send(i, {}));
    client().ExpectSuccess(i);
    server().ExpectReceived(1000 + i, 0);
  }
}

TEST_P(Connecting, DescriptorsAloneWakeBothSides) {
  const auto listener = Listen();
  // Nothing but sleeping on the descriptors: no manager is polled before it is readable.
  Loop nobody(subject());
  client().MoveTo(nobody);
  server().MoveTo(nobody);
  Ask(listener->address());
  ConnectionEvent event;
  const auto sleep_for = [&](Party& party, Type type) {
    // A device may need several steps, each behind its own wake-up.
    for (int step = 0; step < 10; ++step) {
      if (!SleepUntilReadable(party.manager().fd())) return false;
      if (party.manager().PollEvent(&event)) return event.type == type;
    }
    return false;
  };
  ASSERT_TRUE(sleep_for(server(), Type::kConnectRequest));
  Accept(std::move(event.request));
  ASSERT_TRUE(sleep_for(client(), Type::kEstablished));
  ASSERT_TRUE(sleep_for(server(), Type::kEstablished));
  client().manager().Disconnect(client().pair());
  ASSERT_TRUE(sleep_for(server(), Type::kDisconnected));
  // All taken: nothing is readable for ever.
  pollfd entry = {.fd = server().manager().fd(), .events = POLLIN, .revents = 0};
  EXPECT_FALSE(server().manager().PollEvent(&event));
  EXPECT_EQ(poll(&entry, 1, 0), 0);
  client().MoveTo(loop());
  server().MoveTo(loop());
}

TEST_P(Connecting, TimeoutWakesTheDescriptor) {
  const auto listener = Listen();
  Ask(listener->address(), WithTimeout(50));
  const auto request = ExpectRequest();
  ConnectionEvent event;
  bool came = client().has_event();
  for (int step = 0; step < 10 && !came; ++step) {
    ASSERT_TRUE(SleepUntilReadable(client().manager().fd()));
    came = client().manager().PollEvent(&event);
  }
  EXPECT_TRUE(came);
}

TEST_P(Connecting, PollEventWithoutEventsTakesNothing) {
  ConnectionEvent event;
  EXPECT_FALSE(client().manager().PollEvent(&event));
}

VERBENA_CONFORMANCE(Connecting);

}  // namespace
}  // namespace verbena::conformance
