// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/peer_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbena {
namespace {

using std::chrono::milliseconds;
using Verdict = PeerWatch::Verdict;

constexpr int64_t kMs = 1'000'000;

// A watch of 600 ms: looked at every 100.
class PeerWatchTest : public testing::Test {
 protected:
  Verdict Look(bool awaited = true, int64_t after_ms = 100) {
    now_ns_ += after_ms * kMs;
    return watch_.Look(now_ns_, heard_, [&] { return awaited; });
  }
  std::vector<Verdict> Looks(int count, bool awaited = true) {
    std::vector<Verdict> verdicts;
    for (int i = 0; i < count; ++i) verdicts.push_back(Look(awaited));
    return verdicts;
  }

  PeerWatch watch_{milliseconds(600)};
  int64_t now_ns_ = 7 * kMs;
  uint64_t heard_ = 0;
};

constexpr Verdict kFine = Verdict::kFine;
constexpr Verdict kAsk = Verdict::kAsk;
constexpr Verdict kSuspect = Verdict::kSuspect;

TEST_F(PeerWatchTest, IsLookedAtSixTimesInTheDetectionTime) {
  EXPECT_TRUE(watch_.enabled());
  EXPECT_EQ(watch_.look_interval_ns(), 100 * kMs);
  EXPECT_FALSE(PeerWatch(milliseconds(0)).enabled());
}

TEST_F(PeerWatchTest, AsksASilentPeerAtOnceAndSuspectsItThreeLooksLater) {
  EXPECT_EQ(Looks(4), (std::vector{kAsk, kFine, kFine, kSuspect}));
  EXPECT_EQ(watch_.silent_ns(), 300 * kMs);
  EXPECT_TRUE(watch_.IsLost(heard_));
}

// The promise of EndpointOptions::detection_time, with the worst moment to vanish.
TEST_F(PeerWatchTest, SuspectsWithinTheDetectionTimeAPeerThatVanishesRightAfterALook) {
  Look();
  const int64_t vanished_ns = now_ns_;
  ++heard_;  // Its last words.
  while (Look() != kSuspect) ASSERT_LT(now_ns_, vanished_ns + 600 * kMs);
  EXPECT_EQ(now_ns_ - vanished_ns, 500 * kMs);
}

TEST_F(PeerWatchTest, AsksAPeerThatNobodyWaitsForOnceInADetectionTime) {
  EXPECT_EQ(Looks(6, /*awaited=*/false), (std::vector{kFine, kFine, kFine, kFine, kFine, kAsk}));
  ++heard_;  // The answer.
  EXPECT_EQ(Looks(7, /*awaited=*/false),
            (std::vector{kFine, kFine, kFine, kFine, kFine, kFine, kAsk}));
  EXPECT_EQ(Looks(3, /*awaited=*/false), (std::vector{kFine, kFine, kSuspect}));
}

TEST_F(PeerWatchTest, AsksSoonerWhenSomebodyBeginsToWait) {
  EXPECT_EQ(Looks(3, /*awaited=*/false), (std::vector{kFine, kFine, kFine}));
  EXPECT_EQ(Look(/*awaited=*/true), kAsk);
}

TEST_F(PeerWatchTest, NeverAsksAPeerThatIsHeardOf) {
  for (int i = 0; i < 100; ++i) {
    ++heard_;
    EXPECT_EQ(Look(), kFine);
  }
}

TEST_F(PeerWatchTest, BeginsAnewWhenSomethingIsHeard) {
  EXPECT_EQ(Looks(3), (std::vector{kAsk, kFine, kFine}));
  ++heard_;
  EXPECT_EQ(Looks(5), (std::vector{kFine, kAsk, kFine, kFine, kSuspect}));
}

TEST_F(PeerWatchTest, CountsALookThatComesVeryLateAsOne) {
  EXPECT_EQ(Look(), kAsk);
  EXPECT_EQ(Look(true, /*after_ms=*/1'000'000), kFine);
  EXPECT_EQ(Look(true, /*after_ms=*/1'000'000), kFine);
  EXPECT_EQ(Look(), kSuspect);
}

TEST_F(PeerWatchTest, DoesNotSuspectSoonerWhenLooksComeCloseTogether) {
  EXPECT_EQ(Look(), kAsk);
  for (int ms = 10; ms < 250; ms += 10) EXPECT_EQ(Look(true, 10), kFine) << ms;
  EXPECT_EQ(Look(true, 10), kSuspect);
}

TEST_F(PeerWatchTest, ClearsAPeerThatWasHeardOfAfterTheSuspicion) {
  Looks(4);
  EXPECT_TRUE(watch_.suspected());
  ++heard_;
  EXPECT_FALSE(watch_.IsLost(heard_));
  EXPECT_EQ(Look(), kFine);
}

TEST_F(PeerWatchTest, JudgesASuspicionOnceHoweverLateThatIs) {
  EXPECT_EQ(Looks(6), (std::vector{kAsk, kFine, kFine, kSuspect, kFine, kFine}));
  EXPECT_TRUE(watch_.IsLost(heard_));
  EXPECT_FALSE(watch_.IsLost(heard_));
  PeerWatch fresh(milliseconds(600));
  EXPECT_FALSE(fresh.IsLost(0)) << "nobody suspected it";
}

TEST_F(PeerWatchTest, GivesAPeerThatHasToSpeakFirstTenTimesAsLong) {
  watch_.ExpectFirstWord();
  EXPECT_EQ(Look(), kAsk);
  for (int look = 1; look < 60; ++look) ASSERT_EQ(Look(), kFine) << look;
  EXPECT_EQ(Look(), kSuspect);
}

TEST_F(PeerWatchTest, ExpectsTheUsualOfAPeerThatHasSpoken) {
  watch_.ExpectFirstWord();
  Looks(10);
  ++heard_;
  EXPECT_EQ(Looks(5), (std::vector{kFine, kAsk, kFine, kFine, kSuspect}));
}

}  // namespace
}  // namespace verbena
