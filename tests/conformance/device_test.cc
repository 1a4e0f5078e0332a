// SPDX-License-Identifier: Apache-2.0
//
// Capabilities agree with behaviour; what is created is within its limits, and the error for more
// names the limit.

#include <algorithm>
#include <set>

#include "verbena/tests/conformance/connected_pair.h"

namespace verbena::conformance {
namespace {

using absl::StatusCode;

class DeviceCapabilities : public DeviceTest {};

TEST_P(DeviceCapabilities, NameTheDeviceAndUsableLimits) {
  EXPECT_FALSE(can().device.empty());
  EXPECT_FALSE(can().wire.empty());
  EXPECT_GE(can().message_bytes_max, size_t{1} << 20);
  EXPECT_GE(can().queue_pairs_max, 2u);
  EXPECT_GE(can().queue_depth_max, 64u);
  EXPECT_GE(can().completion_queue_depth_max, can().queue_depth_max);
  EXPECT_GE(can().send_sge_max, 1u);
  EXPECT_GE(can().recv_sge_max, 1u);
  EXPECT_GE(can().private_data_bytes_max, kPrivateDataBytesMax);
}

TEST_P(DeviceCapabilities, ServeTheSchemeOfTheirAddresses) {
  EXPECT_TRUE(device().ServesScheme(FreshAddress().scheme));
  EXPECT_FALSE(device().ServesScheme("carrier-pigeon"));
  EXPECT_FALSE(device().ServesScheme(""));
}

TEST_P(DeviceCapabilities, GovernMemoryWindows) {
  const auto domain = Must(device().AllocateProtectionDomain());
  if (can().memory_windows) {
    EXPECT_THAT(domain->AllocateWindow(), IsOk());
  } else {
    EXPECT_THAT(domain->AllocateWindow(), HasCode(StatusCode::kUnimplemented));
  }
}

TEST_P(DeviceCapabilities, GovernSharedReceiveQueues) {
  const auto domain = Must(device().AllocateProtectionDomain());
  if (can().shared_receive_queue) {
    EXPECT_THAT(domain->CreateSharedReceiveQueue({}), IsOk());
  } else {
    EXPECT_THAT(domain->CreateSharedReceiveQueue({}), HasCode(StatusCode::kUnimplemented));
  }
}

TEST_P(DeviceCapabilities, SeveralDevicesLiveInOneProcess) {
  const auto other = Must(subject().create());
  EXPECT_EQ(other->capabilities().device, can().device);
  EXPECT_NE(other.get(), &device());
}

class Opcodes : public ConnectedPair {
 protected:
  // An opcode without its capability is refused at once and does no harm.
  void ExpectGoverned(bool capability, const Request& request) {
    if (capability) return;  // Tested where it is used.
    size_t accepted = 7;
    EXPECT_THAT(client().TryPost({request}, &accepted), HasCode(StatusCode::kUnimplemented));
    EXPECT_EQ(accepted, 0u);
    EXPECT_EQ(client().pair().state(), QueuePairState::kReadyToSend);
  }
};

TEST_P(Opcodes, WithoutTheirCapabilityAreUnimplemented) {
  const Buffer& ours = client().Allocate(64);
  const Buffer& theirs = server().Allocate(64);
  ExpectGoverned(can().send_with_imm, SendWithImm(1, {ours.First(8)}, 5));
  ExpectGoverned(can().write_with_imm, WriteWithImm(1, {ours.First(8)}, theirs.Start(), 5));
  ExpectGoverned(can().send_with_invalidate,
                 SendWithInvalidate(1, {ours.First(8)}, theirs.region().remote_key()));
  ExpectGoverned(can().atomics, FetchAndAdd(1, ours.First(8), theirs.Start(), 1));
  ExpectGoverned(can().atomics, CompareAndSwap(1, ours.First(8), theirs.Start(), 1, 2));
  ExpectGoverned(can().memory_windows,
                 LocalInvalidate(1, RemoteKey{ours.region().remote_key().value}));
}

TEST_P(Opcodes, UnknownOnesAreRefused) {
  const absl::Status status = client().TryPost(Request(1, static_cast<Opcode>(77), {}));
  EXPECT_FALSE(status.ok());
  client().ExpectNoCompletion();
  EXPECT_EQ(client().pair().state(), QueuePairState::kReadyToSend);
}

class Creation : public TwoParties {
 protected:
  absl::Status TryCreate(const QueuePairOptions& options) {
    return client().domain().CreateQueuePair(options).status();
  }
};

TEST_P(Creation, QueuePairStartsInInitWithANumberOfItsOwn) {
  std::set<uint32_t> numbers;
  std::vector<std::unique_ptr<QueuePair>> pairs;
  for (int i = 0; i < 8; ++i) {
    pairs.push_back(client().NewQueuePair(client().DefaultOptions()));
    EXPECT_EQ(pairs.back()->state(), QueuePairState::kInit);
    EXPECT_TRUE(numbers.insert(pairs.back()->number()).second) << pairs.back()->number();
  }
  pairs.erase(pairs.begin() + 3);
  pairs.push_back(client().NewQueuePair(client().DefaultOptions()));
  numbers.clear();
  for (const auto& pair : pairs) EXPECT_TRUE(numbers.insert(pair->number()).second);
}

TEST_P(Creation, QueuePairOverALimitNamesTheOption) {
  QueuePairOptions options = client().DefaultOptions();
  options.send_sge_max = can().send_sge_max + 1;
  EXPECT_THAT(TryCreate(options), HasCodeAndNames(StatusCode::kInvalidArgument, "send_sge_max"));
  options = client().DefaultOptions();
  options.recv_sge_max = can().recv_sge_max + 1;
  EXPECT_THAT(TryCreate(options), HasCodeAndNames(StatusCode::kInvalidArgument, "recv_sge_max"));
  options = client().DefaultOptions();
  options.inline_bytes_max = can().inline_bytes_max + 1;
  EXPECT_THAT(TryCreate(options),
              HasCodeAndNames(StatusCode::kInvalidArgument, "inline_bytes_max"));
}

TEST_P(Creation, QueueDeeperThanTheDeviceAllowsNamesTheOption) {
  if (can().completion_queue_depth_max <= can().queue_depth_max + 8) {
    GTEST_SKIP() << "a completion queue for such a pair cannot be made";
  }
  const auto queue = Must(device().CreateCompletionQueue(can().queue_depth_max + 8, nullptr));
  QueuePairOptions options{.send_queue = queue.get(), .recv_queue = queue.get(), .recv_depth = 1};
  options.send_depth = can().queue_depth_max + 1;
  absl::Status status = TryCreate(options);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.ToString().find("send_depth"), std::string::npos) << status;
  options.send_depth = 1;
  options.recv_depth = can().queue_depth_max + 1;
  status = TryCreate(options);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.ToString().find("recv_depth"), std::string::npos) << status;
}

TEST_P(Creation, QueuePairNeedsBothCompletionQueues) {
  QueuePairOptions options = client().DefaultOptions();
  options.send_queue = nullptr;
  EXPECT_THAT(TryCreate(options), HasCodeAndNames(StatusCode::kInvalidArgument, "send_queue"));
  options = client().DefaultOptions();
  options.recv_queue = nullptr;
  EXPECT_THAT(TryCreate(options), HasCodeAndNames(StatusCode::kInvalidArgument, "recv_queue"));
}

TEST_P(Creation, CompletionQueueHoldsWhatWasAskedFor) {
  const auto queue = Must(device().CreateCompletionQueue(10, nullptr));
  EXPECT_GE(queue->depth(), 10u);
  EXPECT_THAT(device().CreateCompletionQueue(can().completion_queue_depth_max + 1, nullptr),
              HasCodeAndNames(StatusCode::kInvalidArgument, "completion_queue_depth_max"));
}

TEST_P(Creation, QueuePairThatCouldOverflowACompletionQueueIsRefused) {
  const auto queue = Must(device().CreateCompletionQueue(32, nullptr));
  const uint32_t depth = queue->depth();
  QueuePairOptions options{.send_queue = queue.get(), .recv_queue = queue.get()};
  options.recv_depth = 8;
  options.send_depth = depth - 8 + 1;
  EXPECT_FALSE(TryCreate(options).ok()) << "one more than there is room for";
  options.send_depth = depth - 8;
  auto first = client().domain().CreateQueuePair(options);
  ASSERT_THAT(first, IsOk());

  // Full: not even the smallest pair finds room, until the first is gone.
  options.send_depth = 1;
  options.recv_depth = 1;
  EXPECT_FALSE(TryCreate(options).ok());
  first->reset();
  EXPECT_THAT(TryCreate(options), IsOk());
}

TEST_P(Creation, EachCompletionQueueIsCountedForItself) {
  const auto sends = Must(device().CreateCompletionQueue(16, nullptr));
  const auto receives = Must(device().CreateCompletionQueue(16, nullptr));
  QueuePairOptions options{.send_queue = sends.get(), .recv_queue = receives.get()};
  options.send_depth = sends->depth();
  options.recv_depth = receives->depth();
  EXPECT_THAT(TryCreate(options), IsOk());
  options.recv_depth = receives->depth() + 1;
  EXPECT_FALSE(TryCreate(options).ok());
  // What was refused holds no place in the queue that had room for it.
  options.recv_depth = receives->depth();
  EXPECT_THAT(TryCreate(options), IsOk());
}

TEST_P(Creation, QueuePairsAreLimitedAndTheLimitIsNamed) {
  if (can().queue_pairs_max > 4096) GTEST_SKIP() << "too many to try: " << can().queue_pairs_max;
  const auto queue = Must(device().CreateCompletionQueue(
      std::min(can().completion_queue_depth_max, 2 * (can().queue_pairs_max + 1)), nullptr));
  QueuePairOptions options{.send_queue = queue.get(), .recv_queue = queue.get()};
  options.send_depth = options.recv_depth = 1;
  std::vector<std::unique_ptr<QueuePair>> pairs;
  while (pairs.size() < can().queue_pairs_max) {
    auto pair = client().domain().CreateQueuePair(options);
    if (absl::IsResourceExhausted(pair.status())) {
      GTEST_SKIP() << "this process may have no more than " << pairs.size() << ": "
                   << pair.status();
    }
    ASSERT_THAT(pair, IsOk()) << pairs.size();
    pairs.push_back(*std::move(pair));
  }
  EXPECT_THAT(TryCreate(options),
              HasCodeAndNames(StatusCode::kResourceExhausted, "queue_pairs_max"));
  pairs.pop_back();
  EXPECT_THAT(TryCreate(options), IsOk());
}

TEST_P(Creation, ArmingNeedsAChannel) {
  EXPECT_THAT(client().queue().Arm(false), HasCode(StatusCode::kFailedPrecondition));
}

TEST_P(Creation, SendsAreRefusedBeforeTheConnection) {
  client().MakePair(client().DefaultOptions());
  const Buffer& from = client().Allocate(64);
  size_t accepted = 7;
  EXPECT_THAT(client().TryPost({Send(1, {from.First(4)})}, &accepted),
              HasCode(StatusCode::kFailedPrecondition));
  EXPECT_EQ(accepted, 0u);
  client().ExpectNoCompletion();
}

TEST_P(Creation, ReceivesPostedBeforeTheConnectionServeIt) {
  client().MakePair(client().DefaultOptions());
  server().MakePair(server().DefaultOptions());
  const Buffer& from = client().Allocate(64);
  const Buffer& to = server().Allocate(64);
  const Buffer& back = client().Allocate(64);
  FillPattern(from.bytes(), 1);
  server().PostRecv(5, {to.All()});
  client().PostRecv(6, {back.All()});
  Join(client(), client().pair(), server(), server().pair(), FreshAddress());
  EXPECT_EQ(client().pair().state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(server().pair().state(), QueuePairState::kReadyToSend);
  client().Post(Send(1, {from.First(64)}));
  server().ExpectReceived(5, 64);
  server().Post(Send(2, {to.First(64)}));
  client().ExpectSuccess(1);
  client().ExpectReceived(6, 64);
  EXPECT_TRUE(HoldsPattern(back.bytes(), 1));
}

VERBENA_CONFORMANCE(DeviceCapabilities);
VERBENA_CONFORMANCE(Opcodes);
VERBENA_CONFORMANCE(Creation);

}  // namespace
}  // namespace verbena::conformance
