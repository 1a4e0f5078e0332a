// SPDX-License-Identifier: Apache-2.0
//
// Connecting to an address that swallows everything.

#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "tests/integration/trial.verbena.h"
#include "tests/vm/rdma_check.h"
#include "verbena/rpc/verbena.h"

namespace verbena {
namespace {

using absl::StatusCode;
using conformance::HasCode;
using conformance::HasCodeAndNames;
using conformance::IsOk;
using conformance::Must;
using conformance::Party;
using std::chrono::milliseconds;

// More than a loaded emulator needs, and less than the kernel's own patience (100 s and more).
constexpr milliseconds kSlack{1500};

// The device's interface is a dummy, where whatever is sent is lost.
Address BlackHole() { return {.scheme = "rdma", .host = "10.1.0.77", .port = 7471}; }

class BlackHoleCheck : public RdmaCheck {
 protected:
  void SetUp() override {
    RdmaCheck::SetUp();
    std::ifstream(kRetransmissions) >> retransmissions_before_;
    std::ofstream(kRetransmissions) << 1;
    threads_before_ = CountThreads();
    client_ = std::make_unique<Party>("client", device(), loop());
    client_->MakePair(client_->DefaultOptions());
  }
  // Soft-iWARP's handshake is inside of a system call, which a thread of its own waits for: 127 s,
  // or 3 with one retransmission.
  void TearDown() override {
    client_.reset();
    EXPECT_TRUE(WaitUntil([this] { return CountThreads() <= threads_before_; }));
    std::ofstream(kRetransmissions) << retransmissions_before_;
  }
  void Ask(milliseconds timeout) {
    ConnectOptions options;
    options.timeout = timeout;
    Must(client_->manager().Connect(client_->pair(), BlackHole(), options));
  }

  static constexpr char kRetransmissions[] = "/proc/sys/net/ipv4/tcp_syn_retries";
  int retransmissions_before_ = 0;
  size_t threads_before_ = 0;
  std::unique_ptr<Party> client_;
};

TEST_F(BlackHoleCheck, IsUnreachableWhenTheTimeIsOver) {
  const Stopwatch watch;
  Ask(milliseconds(500));
  const ConnectionEvent event =
      client_->ExpectEvent(ConnectionEvent::Type::kUnreachable, &client_->pair());
  EXPECT_GE(watch.elapsed(), milliseconds(480));
  EXPECT_LT(watch.elapsed(), milliseconds(500) + kSlack);
  EXPECT_THAT(event.status, HasCodeAndNames(StatusCode::kUnavailable, "500 ms"));
  client_->ExpectNoEvent();
  EXPECT_EQ(client_->pair().state(), QueuePairState::kInit);
}

TEST_F(BlackHoleCheck, DoesNotHoldAQueuePairThatIsDestroyed) {
  Ask(milliseconds(60'000));
  std::this_thread::sleep_for(milliseconds(200));  // Into the handshake.
  const Stopwatch watch;
  client_->DestroyPair();
  EXPECT_LT(watch.elapsed(), kSlack);
  client_->ExpectNoEvent();
}

TEST_F(BlackHoleCheck, DoesNotHoldAConnectionManagerThatIsDestroyed) {
  auto manager = Must(device().CreateConnectionManager());
  ConnectOptions options;
  options.timeout = milliseconds(60'000);
  Must(manager->Connect(client_->pair(), BlackHole(), options));
  std::this_thread::sleep_for(milliseconds(200));
  const Stopwatch watch;
  manager.reset();
  EXPECT_LT(watch.elapsed(), kSlack);
  client_->DestroyPair();
  EXPECT_LT(watch.elapsed(), kSlack);
}

TEST_F(BlackHoleCheck, DoesNotHoldWhoGivesUp) {
  Ask(milliseconds(60'000));
  std::this_thread::sleep_for(milliseconds(200));
  const Stopwatch watch;
  client_->manager().Disconnect(client_->pair());
  EXPECT_LT(watch.elapsed(), kSlack);
  client_->ExpectNoEvent();
}

TEST_F(BlackHoleCheck, DoesNotHinderOtherConnections) {
  Ask(milliseconds(2000));
  Party server("server", device(), loop());
  const conformance::Connection connection =
      conformance::ConnectOneMore(*client_, server, FreshAddress());
  server.PostRecv(*connection.server, 2, {});
  client_->Post(*connection.client, conformance::Send(1, {}));
  client_->ExpectSuccess(1);
  server.ExpectReceived(2, 0);
  client_->ExpectEvent(ConnectionEvent::Type::kUnreachable, &client_->pair());
}

TEST_F(BlackHoleCheck, DoesNotHoldTheExitOfAProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Stopwatch watch;
  EXPECT_EXIT(
      {
        Ask(milliseconds(60'000));
        std::this_thread::sleep_for(milliseconds(200));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_LT(watch.elapsed(), milliseconds(8000));
}

TEST_F(BlackHoleCheck, EndsABlockingCallAtItsDeadline) {
  logs_.Allow("no answer from the peer");
  std::shared_ptr<Channel> channel = CreateChannel(BlackHole().ToString());
  const auto stub = trial::Trial::NewStub(channel);
  for (int i = 0; i < 3; ++i) {
    ClientContext context;
    context.set_timeout(milliseconds(300));
    trial::Text response;
    const Stopwatch watch;
    EXPECT_THAT(stub->Echo(&context, trial::Text(), &response),
                HasCode(StatusCode::kDeadlineExceeded));
    EXPECT_GE(watch.elapsed(), milliseconds(290));
    EXPECT_LT(watch.elapsed(), milliseconds(300) + kSlack);
  }
}

TEST_F(BlackHoleCheck, EndsCallsWhenTheConnectTimeoutIsOver) {
  logs_.Allow("no answer from the peer");
  ChannelOptions options;
  options.connect_timeout = milliseconds(400);
  std::shared_ptr<Channel> channel = CreateChannel(BlackHole().ToString(), options);
  const Stopwatch watch;
  EXPECT_THAT(channel->WaitForConnected(milliseconds(20'000)),
              HasCodeAndNames(StatusCode::kUnavailable, "400 ms"));
  EXPECT_LT(watch.elapsed(), milliseconds(400) + kSlack);
}

TEST_F(BlackHoleCheck, DoesNotHoldAChannelThatEnds) {
  ChannelOptions options;
  options.connect_timeout = milliseconds(60'000);
  std::shared_ptr<Channel> channel = CreateChannel(BlackHole().ToString(), options);
  EXPECT_THAT(channel->WaitForConnected(milliseconds(200)), HasCode(StatusCode::kDeadlineExceeded));
  const Stopwatch watch;
  channel.reset();
  EXPECT_LT(watch.elapsed(), kSlack);
}

}  // namespace
}  // namespace verbena
