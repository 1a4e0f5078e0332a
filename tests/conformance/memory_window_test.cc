// SPDX-License-Identifier: Apache-2.0
//
// Type 2 memory windows: the server binds a part of a region for one peer and takes it back.
// ibv_bind_mw(3); InfiniBand specification vol. 1, 10.6.7.

#include <algorithm>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using Status = CompletionStatus;

// The region itself is closed to the peer: only a window opens it.
constexpr AccessFlags kAccessBindable = kAccessLocalWrite | kAccessWindowBind;
constexpr AccessFlags kAccessWindowReadWrite = kAccessRemoteRead | kAccessRemoteWrite;
constexpr size_t kRegionBytes = 8192;
constexpr size_t kOffset = 1000;  // Of the window in the region.
constexpr size_t kLength = 3000;

class MemoryWindows : public ConnectedPair {
 protected:
  void SetUp() override {
    ConnectedPair::SetUp();
    if (!IsSkipped()) REQUIRE_CAPABILITY(memory_windows);
    if (IsSkipped()) return;
    ours_ = &client().Allocate(kRegionBytes);
    region_ = &server().Allocate(kRegionBytes, kAccessBindable);
    window_ = Must(server().domain().AllocateWindow());
  }
  void TearDown() override { window_.reset(); }

  const Buffer& ours() { return *ours_; }
  const Buffer& region() { return *region_; }
  MemoryWindow& window() { return *window_; }
  void DestroyWindow() { window_.reset(); }
  RemoteTarget InWindow(size_t offset) {
    return {region().region().address() + kOffset + offset, window().remote_key()};
  }

  void Bind(AccessFlags access = kAccessWindowReadWrite) {
    server().Post(BindWindow(70, window(), region().region(), kOffset, kLength, access));
    server().ExpectSuccess(70, CompletionOpcode::kBindWindow);
  }
  void Invalidate() {
    server().Post(LocalInvalidate(71, window().remote_key()));
    server().ExpectSuccess(71, CompletionOpcode::kLocalInvalidate);
  }
  Pieces Ours(size_t bytes) { return {ours_->First(bytes)}; }
  void ExpectAllowed(const Request& request) {
    client().Post(request);
    client().ExpectSuccess(request.work().wr_id);
  }
  void ExpectRefused(const Request& request) {
    client().Post(request);
    client().ExpectRefusedByPeer(request.work().wr_id, Status::kRemoteAccessError);
  }
  // The bind is accepted, fails, and takes the queue pair with it.
  void ExpectBindError(const Request& bind) {
    server().Post(bind);
    server().ExpectCompletion(bind.work().wr_id, Status::kWindowBindError);
    server().ExpectState(QueuePairState::kError);
  }

 private:
  const Buffer* ours_ = nullptr;
  const Buffer* region_ = nullptr;
  std::unique_ptr<MemoryWindow> window_;
};

TEST_P(MemoryWindows, NextKeyHasTheSameIndexAndTheNextTag) {
  const uint32_t before = window().remote_key().value;
  const RemoteKey next = window().NextKey();
  EXPECT_EQ(next.value >> 8, before >> 8);
  EXPECT_EQ(next.value & 0xff, (before + 1) & 0xff);
  Bind();
  EXPECT_EQ(window().remote_key(), next);
}

TEST_P(MemoryWindows, OpenARegionThatIsClosedItself) {
  Bind();
  const Buffer& ours = client().Allocate(2 * kLength);
  FillPattern(ours.bytes(0, kLength), 1);
  ExpectAllowed(Write(1, {ours.First(kLength)}, InWindow(0)));
  EXPECT_TRUE(HoldsPattern(region().bytes(kOffset, kLength), 1));
  ExpectAllowed(Read(2, {ours.Piece(kLength, kLength)}, InWindow(0)));
  EXPECT_TRUE(HoldsPattern(ours.bytes(kLength, kLength), 1));
  EXPECT_TRUE(HoldsOnly(region().bytes(0, kOffset), 0));
  EXPECT_TRUE(HoldsOnly(region().bytes().subspan(kOffset + kLength), 0));
}

TEST_P(MemoryWindows, BindRunsInOrderWithTheSendThatTellsOfIt) {
  const Buffer& message = server().Allocate(64);
  const Buffer& receive = client().Allocate(64);
  for (int round = 0; round < 50; ++round) {
    client().PostRecv(1, {receive.All()});
    message.word() = window().NextKey().value;
    server().Post(
        {BindWindow(70, window(), region().region(), kOffset, kLength, kAccessWindowReadWrite)
             .Unsignaled(),
         Send(71, {message.First(8)})});
    client().ExpectReceived(1, 8);
    const RemoteKey key{static_cast<uint32_t>(receive.word())};
    ExpectAllowed(Write(2, {receive.First(8)}, {region().region().address() + kOffset, key}));
    server().ExpectSuccess(71);
    Invalidate();
    if (HasFailure()) return;
  }
}

TEST_P(MemoryWindows, UnboundWindowOpensNothing) {
  ExpectRefused(Write(1, Ours(8), InWindow(0)));
  EXPECT_TRUE(HoldsOnly(region().bytes(), 0));
}

TEST_P(MemoryWindows, EndWhereTheyWereBoundTo) {
  Bind();
  ExpectRefused(Write(1, Ours(8), InWindow(kLength - 7)));
  EXPECT_TRUE(HoldsOnly(region().bytes(), 0));
}

TEST_P(MemoryWindows, BeginWhereTheyWereBoundTo) {
  Bind();
  RemoteTarget at = InWindow(0);
  at.address -= 1;
  ExpectRefused(Read(1, Ours(8), at));
}

TEST_P(MemoryWindows, ForReadingRefuseWrites) {
  Bind(kAccessRemoteRead);
  ExpectAllowed(Read(1, Ours(8), InWindow(0)));
  ExpectRefused(Write(2, Ours(8), InWindow(0)));
}

TEST_P(MemoryWindows, ForWritingRefuseReads) {
  Bind(kAccessRemoteWrite);
  ExpectAllowed(Write(1, Ours(8), InWindow(0)));
  ExpectRefused(Read(2, Ours(8), InWindow(0)));
}

TEST_P(MemoryWindows, CarryAtomicsWithTheRight) {
  REQUIRE_CAPABILITY(atomics);
  Bind(kAccessRemoteAtomic);
  region().word(kOffset) = 5;
  ExpectAllowed(FetchAndAdd(1, Ours(8)[0], InWindow(0), 2));
  EXPECT_EQ(region().word(kOffset), 7u);
  ExpectRefused(Write(2, Ours(8), InWindow(0)));
}

TEST_P(MemoryWindows, AreForTheOnePeerOnly) {
  Bind();
  const Connection other = ConnectOneMore(client(), server(), FreshAddress());
  client().Post(*other.client, Write(1, Ours(8), InWindow(0)));
  client().ExpectRefusedByPeer(*other.client, 1, Status::kRemoteAccessError);
  EXPECT_TRUE(HoldsOnly(region().bytes(), 0));
  ExpectAllowed(Write(2, Ours(8), InWindow(0)));
}

TEST_P(MemoryWindows, EndByLocalInvalidation) {
  Bind();
  ExpectAllowed(Write(1, Ours(8), InWindow(0)));
  Invalidate();
  ExpectRefused(Write(2, Ours(8), InWindow(0)));
}

TEST_P(MemoryWindows, EndByThePeersInvalidation) {
  REQUIRE_CAPABILITY(send_with_invalidate);
  Bind();
  server().PostRecv(9, {server().Allocate(64).All()});
  client().Post(SendWithInvalidate(1, Ours(5), window().remote_key()));
  client().ExpectSuccess(1, CompletionOpcode::kSend);
  const WorkCompletion completion = server().ExpectSuccess(9, CompletionOpcode::kRecv);
  EXPECT_EQ(completion.byte_length, 5u);
  EXPECT_EQ(completion.flags, kCompletionWithInvalidate);
  EXPECT_EQ(completion.invalidated_key, window().remote_key().value);
  ExpectRefused(Write(2, Ours(8), InWindow(0)));
  EXPECT_TRUE(HoldsOnly(region().bytes(), 0));
}

// The invalidation is the peer's device's business: its program need not have seen the message.
TEST_P(MemoryWindows, WriteBehindTheInvalidationFailsThoughThePeerSleeps) {
  REQUIRE_CAPABILITY(send_with_invalidate);
  Bind();
  ExpectAllowed(Write(1, Ours(8), InWindow(0)));
  FillPattern(ours().bytes(), 3);
  server().PostRecv(9, {});
  Loop alone(subject());
  client().MoveTo(alone);
  client().Post({SendWithInvalidate(2, {}, window().remote_key()), Write(3, Ours(8), InWindow(0))});
  client().ExpectSuccess(2);
  client().ExpectRefusedByPeer(3, Status::kRemoteAccessError);
  client().MoveTo(loop());
  EXPECT_TRUE(HoldsOnly(region().bytes(), 0));
}

TEST_P(MemoryWindows, WriteInFrontOfTheInvalidationStillLands) {
  REQUIRE_CAPABILITY(send_with_invalidate);
  const Buffer& ours = client().Allocate(kLength);
  for (uint32_t round = 0; round < 50; ++round) {
    Bind();
    FillPattern(ours.bytes(), round);
    server().PostRecv(9, {});
    client().Post({Write(1, {ours.All()}, InWindow(0)).Unsignaled(),
                   SendWithInvalidate(2, {}, window().remote_key())});
    client().ExpectSuccess(2);
    server().ExpectSuccess(9);
    ASSERT_TRUE(HoldsPattern(region().bytes(kOffset, kLength), round));
  }
}

TEST_P(MemoryWindows, BoundAgainHaveAnotherKeyAndTheOldOneIsDead) {
  Bind();
  const RemoteTarget old = InWindow(0);
  Invalidate();
  Bind();
  EXPECT_NE(window().remote_key(), old.key);
  ExpectAllowed(Write(1, Ours(8), InWindow(0)));
  ExpectRefused(Write(2, Ours(8), old));
}

TEST_P(MemoryWindows, EveryTagOfTheKeyCanBeUsed) {
  for (int round = 0; round < 300; ++round) {  // Once around the 8-bit tag.
    Bind();
    ExpectAllowed(Write(1, Ours(1), InWindow(0)));
    Invalidate();
    if (HasFailure()) return;
  }
}

TEST_P(MemoryWindows, DestroyedOnesOpenNothing) {
  Bind();
  const RemoteTarget at = InWindow(0);
  ExpectAllowed(Write(1, Ours(8), at));
  DestroyWindow();
  ExpectRefused(Write(2, Ours(8), at));
}

TEST_P(MemoryWindows, EndWithTheRegion) {
  Buffer& short_lived = server().Allocate(4096, kAccessBindable);
  server().Post(BindWindow(70, window(), short_lived.region(), 0, 4096, kAccessWindowReadWrite));
  server().ExpectSuccess(70);
  const RemoteTarget at = {short_lived.region().address(), window().remote_key()};
  ExpectAllowed(Write(1, Ours(8), at));
  // InfiniBand forbids to deregister a region with a window on it (10.6.7.2.6), so invalidate.
  Invalidate();
  short_lived.Deregister();
  ExpectRefused(Write(2, Ours(8), at));
}

TEST_P(MemoryWindows, SeveralOnOneRegionAreIndependent) {
  const auto second = Must(server().domain().AllocateWindow());
  Bind();
  server().Post(BindWindow(70, *second, region().region(), 0, 64, kAccessRemoteWrite));
  server().ExpectSuccess(70);
  EXPECT_NE(second->remote_key(), window().remote_key());
  server().Post(LocalInvalidate(71, second->remote_key()));
  server().ExpectSuccess(71);
  ExpectAllowed(Write(1, Ours(8), InWindow(0)));
  ExpectRefused(Write(2, Ours(8), {region().region().address(), second->remote_key()}));
}

class BindingAWindow : public MemoryWindows {};

// o10-37.2.30: a type 2 window is bound in the free state only.
TEST_P(BindingAWindow, NeedsTheInvalidationOfTheBindingBefore) {
  Bind();
  ExpectBindError(BindWindow(1, window(), region().region(), 0, 100, kAccessRemoteRead));
}

// o10-37.2.40: length 0 does not unbind a type 2 window; it is an error.
TEST_P(BindingAWindow, NeedsALength) {
  ExpectBindError(BindWindow(1, window(), region().region(), 0, 0, kAccessRemoteRead));
}

TEST_P(BindingAWindow, NeedsTheBindRightOfTheRegion) {
  const Buffer& closed = server().Allocate(4096, kAccessLocalWrite);
  ExpectBindError(BindWindow(1, window(), closed.region(), 0, 100, kAccessRemoteRead));
}

TEST_P(BindingAWindow, StaysInsideTheRegion) {
  ExpectBindError(BindWindow(1, window(), region().region(), 1, kRegionBytes, kAccessRemoteRead));
}

TEST_P(BindingAWindow, DoesNotWrapAround) {
  ExpectBindError(
      BindWindow(1, window(), region().region(), 100, ~size_t{0} - 50, kAccessRemoteRead));
}

TEST_P(BindingAWindow, ForWritingNeedsTheLocalWriteRight) {
  const Buffer& read_only = server().Allocate(4096, kAccessWindowBind);
  ExpectBindError(BindWindow(1, window(), read_only.region(), 0, 100, kAccessRemoteWrite));
}

TEST_P(BindingAWindow, TakesNoRegionOfAnotherDomain) {
  const Buffer& foreign = client().Allocate(4096, kAccessBindable);
  ExpectBindError(BindWindow(1, window(), foreign.region(), 0, 100, kAccessRemoteRead));
}

TEST_P(BindingAWindow, FailureFlushesWhatIsBehindIt) {
  const Buffer& closed = server().Allocate(4096, kAccessLocalWrite);
  client().PostRecv(9, {});
  server().Post({BindWindow(1, window(), closed.region(), 0, 100, kAccessRemoteRead).Unsignaled(),
                 Send(2, {}).Unsignaled()});
  server().ExpectCompletion(1, Status::kWindowBindError);
  server().ExpectFlushed({2});
  client().ExpectNoCompletion();
}

class Invalidation : public MemoryWindows {};

TEST_P(Invalidation, OfAKeyThatWasNeverGivenFails) {
  server().Post(LocalInvalidate(1, RemoteKey{window().remote_key().value ^ 0x5a5a5a00}));
  EXPECT_NE(server().NextCompletion().status, Status::kSuccess);
  server().ExpectState(QueuePairState::kError);
}

// A peer must not close what it was not given: neither an ordinary region nor the window of
// another peer. Whether the sender or the receiver gets the error is the device's choice.
TEST_P(Invalidation, ByThePeerOfAnOrdinaryRegionFails) {
  REQUIRE_CAPABILITY(send_with_invalidate);
  const Connection other = ConnectOneMore(client(), server(), FreshAddress());
  const Buffer& open = server().Allocate(4096);
  server().PostRecv(9, {});
  client().Post(SendWithInvalidate(1, {}, open.region().remote_key()));
  const Status sent = client().NextCompletion().status;
  const Status received = server().NextCompletion().status;
  EXPECT_FALSE(sent == Status::kSuccess && received == Status::kSuccess);
  client().Post(*other.client, Write(2, Ours(8), open.Start()));
  client().ExpectSuccess(2);
}

TEST_P(Invalidation, ByAnotherPeerFails) {
  REQUIRE_CAPABILITY(send_with_invalidate);
  Bind();
  const Connection other = ConnectOneMore(client(), server(), FreshAddress());
  server().PostRecv(*other.server, 9, {});
  client().Post(*other.client, SendWithInvalidate(1, {}, window().remote_key()));
  const Status sent = client().NextCompletion().status;
  const Status received = server().NextCompletion().status;
  EXPECT_FALSE(sent == Status::kSuccess && received == Status::kSuccess);
  ExpectAllowed(Write(2, Ours(8), InWindow(0)));
}

TEST_P(Invalidation, ByThePeerOfADeadKeyFails) {
  REQUIRE_CAPABILITY(send_with_invalidate);
  Bind();
  Invalidate();
  server().PostRecv(9, {});
  client().Post(SendWithInvalidate(1, {}, window().remote_key()));
  const Status sent = client().NextCompletion().status;
  const Status received = server().NextCompletion().status;
  EXPECT_FALSE(sent == Status::kSuccess && received == Status::kSuccess);
}

VERBENA_CONFORMANCE(MemoryWindows);
VERBENA_CONFORMANCE(BindingAWindow);
VERBENA_CONFORMANCE(Invalidation);

}  // namespace
}  // namespace verbena::conformance
