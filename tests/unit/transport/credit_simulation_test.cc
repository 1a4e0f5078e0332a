// SPDX-License-Identifier: Apache-2.0
//
// Two parties with a credit account each, an ordered wire between them, and chance: the argument in
// credit_account.h, run. At every step
//
//   sender's available + frames on the wire + frames not yet posted again + unreported credits
//     + credits reported in frames on the wire back  ==  receiver's ring,
//
// the receiver always has a receive for the frame that arrives, and both finish whatever they want
// to send.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>

#include "verbena/base/random.h"
#include "verbena/transport/credit_account.h"

namespace verbena {
namespace {

struct SimulatedFrame {
  bool data = false;
  uint16_t credits = 0;
};

class Party {
 public:
  Party(uint32_t own_depth, uint32_t peer_depth, uint32_t repost_batch, uint32_t to_send)
      : account_(peer_depth, own_depth),
        own_depth_(own_depth),
        repost_batch_(repost_batch),
        to_send_(to_send),
        receives_posted_(own_depth) {}

  void set_peer(Party* peer) { peer_ = peer; }

  bool TrySendData() {
    if (to_send_ == 0 || !account_.CanSpend(CreditClass::kData)) return false;
    --to_send_;
    Send(true);
    return true;
  }

  // As Endpoint::Service does.
  bool ServiceGrant() {
    if (!account_.GrantDue() || !account_.CanSpend(CreditClass::kGrant)) return false;
    Send(false);
    return true;
  }

  // False when nothing is on the way to this party.
  bool Receive() {
    if (inbox_.empty()) return false;
    const SimulatedFrame frame = inbox_.front();
    inbox_.pop_front();
    EXPECT_GT(receives_posted_, 0u) << "receiver not ready";
    --receives_posted_;
    EXPECT_TRUE(account_.Return(frame.credits)) << "more credits than were spent";
    received_ += frame.data ? 1 : 0;
    if (++released_ >= repost_batch_) {
      receives_posted_ += released_;
      account_.Reposted(released_);
      released_ = 0;
    }
    return true;
  }

  // Every receive of this party's ring is in exactly one place.
  void ExpectConserved() const {
    const uint32_t on_the_way_back =
        std::accumulate(peer_->inbox_.begin(), peer_->inbox_.end(), 0u,
                        [](uint32_t sum, const SimulatedFrame& f) { return sum + f.credits; });
    ASSERT_EQ(peer_->account_.available() + inbox_.size() + released_ + account_.unreported() +
                  on_the_way_back,
              own_depth_);
    ASSERT_EQ(receives_posted_ + released_, own_depth_);
  }

  bool finished() const { return to_send_ == 0 && inbox_.empty(); }
  uint32_t received() const { return received_; }

 private:
  void Send(bool data) {
    const uint16_t credits = account_.TakeUnreported();
    account_.Spend();
    peer_->inbox_.push_back({data, credits});
  }

  CreditAccount account_;
  const uint32_t own_depth_;
  const uint32_t repost_batch_;
  uint32_t to_send_;
  uint32_t receives_posted_;
  uint32_t released_ = 0;
  uint32_t received_ = 0;
  std::deque<SimulatedFrame> inbox_;
  Party* peer_ = nullptr;
};

struct Shape {
  uint32_t depth[2];
  uint32_t to_send[2];
};

void Simulate(const Shape& shape, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", rings " << shape.depth[0] << " and "
                                  << shape.depth[1]);
  Random random(seed);
  // A repost batch as Endpoint's: an eighth of the ring, at most 16.
  const auto batch = [](uint32_t depth) { return std::min(16u, depth / 8); };
  Party a(shape.depth[0], shape.depth[1], batch(shape.depth[0]), shape.to_send[0]);
  Party b(shape.depth[1], shape.depth[0], batch(shape.depth[1]), shape.to_send[1]);
  a.set_peer(&b);
  b.set_peer(&a);
  // Random bursts of one action of one party; when chance finds nothing to do for long, everything
  // is tried in turn, and if nothing of it is possible both are stuck.
  while (!(a.finished() && b.finished())) {
    Party& party = random.Below(2) == 0 ? a : b;
    const uint64_t action = random.Below(3);
    bool moved = false;
    for (uint64_t burst = random.Below(20) + 1; burst > 0; --burst) {
      const bool done = action == 0   ? party.TrySendData()
                        : action == 1 ? party.Receive()
                                      : party.ServiceGrant();
      moved |= done;
      if (!done) break;
      a.ExpectConserved();
      b.ExpectConserved();
      if (testing::Test::HasFatalFailure()) return;
    }
    if (moved) continue;
    const bool possible = a.Receive() || b.Receive() || a.ServiceGrant() || b.ServiceGrant() ||
                          a.TrySendData() || b.TrySendData();
    ASSERT_TRUE(possible) << "deadlock: neither can send, and nothing is on the wire";
  }
  EXPECT_EQ(a.received(), shape.to_send[1]);
  EXPECT_EQ(b.received(), shape.to_send[0]);
}

TEST(CreditSimulation, BothSidesFinishWhenBothSend) {
  for (uint64_t seed = 1; seed <= 50; ++seed) Simulate({{16, 16}, {2000, 2000}}, seed);
}

TEST(CreditSimulation, OneSideFinishesWhenTheOtherOnlyGrants) {
  for (uint64_t seed = 1; seed <= 50; ++seed) Simulate({{16, 16}, {2000, 0}}, seed);
}

TEST(CreditSimulation, RingsOfDifferentDepthsFinish) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Simulate({{16, 4096}, {3000, 3000}}, seed);
    Simulate({{128, 16}, {3000, 3000}}, seed);
    Simulate({{1024, 16}, {0, 5000}}, seed);
  }
}

}  // namespace
}  // namespace verbena
