// SPDX-License-Identifier: Apache-2.0
//
// COMPARE_AND_SWAP and FETCH_AND_ADD.

#include <atomic>
#include <functional>
#include <thread>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

constexpr AccessFlags kAccessAtomic = kAccessLocalWrite | kAccessRemoteRead | kAccessRemoteAtomic;

class Atomics : public ConnectedPair {
 protected:
  void SetUp() override {
    ConnectedPair::SetUp();
    if (!IsSkipped()) REQUIRE_CAPABILITY(atomics);
  }
};

TEST_P(Atomics, CompareAndSwapReplacesAnEqualValueAndReturnsTheOld) {
  const Buffer& old_value = client().Allocate(64);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  target.word(8) = 100;
  client().Post(CompareAndSwap(1, old_value.First(8), target.At(8), 100, 7));
  EXPECT_EQ(client().ExpectSuccess(1, CompletionOpcode::kCompareAndSwap).byte_length, 8u);
  EXPECT_EQ(old_value.word(), 100u);
  EXPECT_EQ(target.word(8), 7u);
  EXPECT_EQ(target.word(0), 0u);
  EXPECT_EQ(target.word(16), 0u);
}

TEST_P(Atomics, CompareAndSwapLeavesAnotherValueAndReturnsIt) {
  const Buffer& old_value = client().Allocate(64);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  target.word() = 0x0102030405060708;
  client().Post(CompareAndSwap(1, old_value.First(8), target.Start(), 0x0102030405060709, 7));
  client().ExpectSuccess(1);
  EXPECT_EQ(old_value.word(), 0x0102030405060708u);
  EXPECT_EQ(target.word(), 0x0102030405060708u);
}

TEST_P(Atomics, FetchAndAddAddsAndReturnsTheOld) {
  const Buffer& old_value = client().Allocate(64);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  target.word() = 7;
  client().Post(FetchAndAdd(1, old_value.Piece(16, 8), target.Start(), 5));
  EXPECT_EQ(client().ExpectSuccess(1, CompletionOpcode::kFetchAndAdd).byte_length, 8u);
  EXPECT_EQ(old_value.word(16), 7u);
  EXPECT_EQ(target.word(), 12u);
}

TEST_P(Atomics, FetchAndAddWrapsAround) {
  const Buffer& old_value = client().Allocate(64);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  target.word() = ~uint64_t{0};
  client().Post(FetchAndAdd(1, old_value.First(8), target.Start(), 3));
  client().ExpectSuccess(1);
  EXPECT_EQ(old_value.word(), ~uint64_t{0});
  EXPECT_EQ(target.word(), 2u);
}

TEST_P(Atomics, OldValueMayGoToUserMemory) {
  const Buffer& old_value = client().RegisterUserMemory(8);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  target.word() = 41;
  client().Post(FetchAndAdd(1, old_value.First(8), target.Start(), 1));
  client().ExpectSuccess(1);
  EXPECT_EQ(old_value.word(), 41u);
}

TEST_P(Atomics, RunInTheOrderTheyWerePosted) {
  const Buffer& old_values = client().Allocate(32 * 8);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 32; ++i) {
    requests.push_back(CompareAndSwap(i, old_values.Piece(8 * i, 8), target.Start(), i, i + 1));
  }
  client().Post(requests);
  for (uint64_t i = 0; i < 32; ++i) {
    client().ExpectSuccess(i);
    EXPECT_EQ(old_values.word(8 * i), i);
  }
  EXPECT_EQ(target.word(), 32u);
}

TEST_P(Atomics, FencedSendCarriesTheOldValue) {
  const Buffer& old_value = client().Allocate(64);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  const Buffer& into = server().Allocate(64);
  for (uint64_t round = 0; round < 100; ++round) {
    server().PostRecv(9, {into.First(8)});
    client().Post({FetchAndAdd(1, old_value.First(8), target.Start(), 1).Unsignaled(),
                   Send(2, {old_value.First(8)}).Fenced()});
    client().ExpectSuccess(2);
    server().ExpectReceived(9, 8);
    ASSERT_EQ(into.word(), round);
  }
}

TEST_P(Atomics, UnalignedAddressIsAnInvalidRequest) {
  const Buffer& old_value = client().Allocate(64);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  client().Post(FetchAndAdd(1, old_value.First(8), target.At(4), 1));
  client().ExpectRefusedByPeer(1, CompletionStatus::kRemoteInvalidRequestError);
  server().ExpectState(QueuePairState::kError);
  EXPECT_TRUE(HoldsOnly(target.bytes(), 0));
}

TEST_P(Atomics, UnalignedAddressTellsTheRespondersProgram) {
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  client().Post(CompareAndSwap(1, client().Allocate(64).First(8), target.At(1), 0, 1));
  client().ExpectRefusedByPeer(1, CompletionStatus::kRemoteInvalidRequestError);
  ExpectAsyncEvent(AsyncEvent::Type::kQueuePairRequestError, server().pair());
}

TEST_P(Atomics, AnyOtherLengthThanEightIsRefusedAtOnce) {
  const Buffer& old_value = client().Allocate(64);
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  for (size_t length : {0u, 4u, 16u}) {
    EXPECT_THAT(client().TryPost(FetchAndAdd(1, old_value.First(length), target.Start(), 1)),
                HasCode(absl::StatusCode::kInvalidArgument))
        << length;
  }
  const Request two_pieces =
      Request(1, Opcode::kCompareAndSwap, {old_value.Piece(0, 4), old_value.Piece(4, 4)})
          .On({.address = target.region().address(),
               .compare_add = 0,
               .swap = 1,
               .key = target.region().remote_key()});
  EXPECT_THAT(client().TryPost(two_pieces), HasCode(absl::StatusCode::kInvalidArgument));
  client().ExpectNoCompletion();
  EXPECT_EQ(target.word(), 0u);
}

// Two peers, each with its own thread, on one counter: not one addition is lost.
class AtomicsOfTwoPeers : public Atomics {
 protected:
  // Runs `work` for two connected parties in a thread each, beginning together.
  void RunBoth(const std::function<void(Party&)>& work) {
    Party second("second client", device(), loop());
    second.MakePair(second.DefaultOptions());
    const auto second_server = server().NewQueuePair(server().DefaultOptions());
    Join(second, second.pair(), server(), *second_server, FreshAddress());
    Loop first_loop(subject());
    Loop second_loop(subject());
    client().MoveTo(first_loop);
    second.MoveTo(second_loop);
    std::atomic<int> ready{0};
    const auto begin_together = [&](Party& party) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      work(party);
    };
    std::thread first_thread = StartThread([&] { begin_together(client()); });
    std::thread second_thread = StartThread([&] { begin_together(second); });
    first_thread.join();
    second_thread.join();
    client().MoveTo(loop());
    second.MoveTo(loop());
  }
};

// Two threads on a busy machine may run one after the other; so each goes on until it has met the
// other this often, within a bound.
constexpr uint32_t kMeetingsWanted = 2000;
constexpr uint64_t kRoundsMax = 200000;

TEST_P(AtomicsOfTwoPeers, NoAdditionIsLost) {
  constexpr uint64_t kBatch = 32;
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  std::atomic<uint64_t> batches{0};
  RunBoth([&](Party& party) {
    const Buffer& old_value = party.Allocate(64);
    std::vector<Request> batch;
    for (uint64_t i = 0; i < kBatch; ++i) {
      batch.push_back(FetchAndAdd(i, old_value.First(8), target.At(8), 3));
      if (i + 1 < kBatch) batch.back().Unsignaled();
    }
    uint32_t meetings = 0;
    uint64_t expected = 0;
    for (uint64_t i = 0; i < Effort(kRoundsMax) && meetings < Effort(kMeetingsWanted); ++i) {
      party.Post(batch);
      party.ExpectSuccess(kBatch - 1);
      ++batches;
      if (HasFailure()) break;
      meetings += old_value.word() != expected + 3 * (kBatch - 1);
      expected = old_value.word() + 3;
    }
  });
  EXPECT_EQ(target.word(8), 3 * kBatch * batches);
}

TEST_P(AtomicsOfTwoPeers, OnlyOneSwapsTheSameValue) {
  constexpr uint64_t kBatch = 32;
  const Buffer& target = server().Allocate(64, kAccessAtomic);
  std::atomic<uint64_t> swapped{0};
  RunBoth([&](Party& party) {
    const Buffer& old_values = party.Allocate(8 * kBatch);
    uint32_t meetings = 0;
    uint64_t first = 0;
    for (uint64_t i = 0; i < Effort(kRoundsMax) && meetings < Effort(kMeetingsWanted); ++i) {
      // A chain of increments; another one's increment between makes the rest of it fail.
      std::vector<Request> chain;
      for (uint64_t k = 0; k < kBatch; ++k) {
        chain.push_back(CompareAndSwap(k, old_values.Piece(8 * k, 8), target.Start(), first + k,
                                       first + k + 1));
        if (k + 1 < kBatch) chain.back().Unsignaled();
      }
      party.Post(chain);
      party.ExpectSuccess(kBatch - 1);
      if (HasFailure()) break;
      uint64_t ours = 0;
      for (uint64_t k = 0; k < kBatch; ++k) ours += old_values.word(8 * k) == first + k;
      swapped += ours;
      meetings += ours != kBatch;
      const uint64_t last = old_values.word(8 * (kBatch - 1));
      first = last == first + kBatch - 1 ? last + 1 : last;
    }
  });
  EXPECT_EQ(target.word(), swapped);
}

VERBENA_CONFORMANCE(Atomics);
VERBENA_CONFORMANCE(AtomicsOfTwoPeers);

}  // namespace
}  // namespace verbena::conformance
