// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/receive_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace verbena {
namespace {

constexpr uint32_t kDepth = 16;
constexpr size_t kStride = 64;

class HeapRegion final : public MemoryRegion {
 public:
  HeapRegion(std::vector<std::byte>* memory, std::atomic<int>* destroyed)
      : MemoryRegion({memory->data(), memory->size()}, kAccessLocalWrite), destroyed_(destroyed) {}
  ~HeapRegion() override { ++*destroyed_; }

 private:
  std::atomic<int>* const destroyed_;
};

class Host final : public EndpointHost {
 public:
  void RunInBackground(EndpointId, std::function<Continuation()>) override {}
  void TendWithin(Endpoint*, int64_t) override {}
};

class ReceiveRingTest : public testing::Test, protected ReceiveRing::Owner {
 protected:
  ReceiveRingTest() : memory_(kDepth * kStride) {
    current_endpoint_host = &host_;
    MakeRing();
  }
  ~ReceiveRingTest() override { current_endpoint_host = nullptr; }
  void MakeRing() {
    ReceiveRing::Options options;
    options.depth = kDepth;
    options.stride = kStride;
    options.domain_id = 7;
    ring_ = ReceiveRing::Create(std::move(options),
                                std::make_unique<HeapRegion>(&memory_, &destroyed_), host_, *this);
  }
  void TakeBackSlot(uint32_t slot) override { back_.push_back(slot); }

  std::vector<std::byte> memory_;
  std::atomic<int> destroyed_{0};
  Host host_;
  std::vector<uint32_t> back_;
  ReceiveRing::Pointer ring_;
};

TEST_F(ReceiveRingTest, LendsTheBeginningOfASlot) {
  const Buffer buffer = ring_->Lend(3, 40);
  EXPECT_EQ(buffer.data(), memory_.data() + 3 * kStride);
  EXPECT_EQ(buffer.size(), 40u);
  EXPECT_EQ(buffer.block()->domain_id, 7u);
  EXPECT_EQ(buffer.block()->region->bytes().data(), memory_.data());
}

TEST_F(ReceiveRingTest, TakesASlotBackWhenItsLastBufferIsGone) {
  Buffer buffer = ring_->Lend(3, 40);
  Buffer part = buffer.Slice(8, 8);
  buffer = Buffer();
  EXPECT_TRUE(back_.empty());
  part = Buffer();
  EXPECT_EQ(back_, std::vector<uint32_t>{3});
}

TEST_F(ReceiveRingTest, LendsAQuarterAndThenNothing) {
  ASSERT_EQ(ring_->lent_max(), 4u);
  std::vector<Buffer> lent;
  for (uint32_t slot = 0; slot < 4; ++slot) lent.push_back(ring_->Lend(slot, 1));
  EXPECT_EQ(ring_->Lend(4, 1).block(), nullptr);
  lent.erase(lent.begin() + 1);
  EXPECT_EQ(ring_->Lend(4, 1).data(), memory_.data() + 4 * kStride);
  EXPECT_EQ(back_, (std::vector<uint32_t>{1, 4}));
}

TEST_F(ReceiveRingTest, CollectsWhatWentOnAnotherThread) {
  Buffer first = ring_->Lend(1, 1);
  Buffer second = ring_->Lend(2, 1);
  EXPECT_FALSE(ring_->HasReturned());
  std::thread([&] { first = second = Buffer(); }).join();
  EXPECT_TRUE(back_.empty());
  EXPECT_TRUE(ring_->HasReturned());
  ring_->CollectReturned();
  EXPECT_FALSE(ring_->HasReturned());
  std::sort(back_.begin(), back_.end());
  EXPECT_EQ(back_, (std::vector<uint32_t>{1, 2}));
}

TEST_F(ReceiveRingTest, CollectsByItselfBeforeItRefuses) {
  std::vector<Buffer> lent;
  for (uint32_t slot = 0; slot < 4; ++slot) lent.push_back(ring_->Lend(slot, 1));
  std::thread([&] { lent.pop_back(); }).join();
  EXPECT_NE(ring_->Lend(9, 1).block(), nullptr);
}

TEST_F(ReceiveRingTest, GoesAtOnceWhenNothingIsLent) {
  ring_->Lend(1, 1);
  std::thread([buffer = ring_->Lend(2, 1)]() mutable { buffer = Buffer(); }).join();
  ring_.reset();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(ReceiveRingTest, KeepsItsMemoryForTheLastReader) {
  Buffer here = ring_->Lend(1, 1);
  Buffer there = ring_->Lend(2, 1);
  back_.clear();
  ring_.reset();
  EXPECT_EQ(destroyed_, 0);
  here = Buffer();
  EXPECT_EQ(destroyed_, 0);
  std::memset(there.data(), 1, there.size());
  std::thread([&] { there = Buffer(); }).join();
  EXPECT_EQ(destroyed_, 1);
  EXPECT_TRUE(back_.empty()) << "the endpoint is gone";
}

// Readers that end while the endpoint does: whoever is last frees the memory, once.
TEST_F(ReceiveRingTest, IsFreedOnceByWhoeverIsLast) {
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Buffer> lent;
    for (uint32_t slot = 0; slot < 4; ++slot) lent.push_back(ring_->Lend(slot, 1));
    std::atomic<int> ready{0};
    std::vector<std::thread> readers;
    for (size_t t = 0; t < 2; ++t) {
      readers.emplace_back([&, mine = std::vector<Buffer>{std::move(lent[2 * t]),
                                                          std::move(lent[2 * t + 1])}]() mutable {
        ++ready;
        while (ready < 3) std::this_thread::yield();
        mine.clear();
      });
    }
    lent.clear();
    ++ready;
    while (ready < 3) std::this_thread::yield();
    if (round % 2 == 0) ring_->CollectReturned();
    ring_.reset();
    for (std::thread& reader : readers) reader.join();
    ASSERT_EQ(destroyed_, round + 1);
    MakeRing();
  }
}

}  // namespace
}  // namespace verbena
