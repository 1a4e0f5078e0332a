// SPDX-License-Identifier: Apache-2.0
//
// Memory that is not there, deadlines in the middle of a message, and many messages at once.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "verbena/base/random.h"
#include "verbena/tests/integration/trial_fixture.h"
#include "verbena/tests/support/pattern.h"
#include "verbena/tests/support/vm_environment.h"

namespace verbena {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Room for one message of 8 MiB and not for two. Soft-iWARP has no memory windows, so there a
// message needs its zone and a copy.
uint64_t RoomForOne() {
  return (Environment("VERBENA_TEST_DEVICE").starts_with("siw") ? 24 : 12) * kMiB;
}

// Sends `bytes` and expects nothing back but a status.
class Upload {
 public:
  Upload(trial::Trial::Stub& stub, Buffer buffer, milliseconds timeout = milliseconds(20'000)) {
    call_.context.set_timeout(timeout);
    call_.context.AddAttachment(std::move(buffer));
    stub.async()->Keep(&call_.context, &call_.request, &call_.response, call_.Done());
  }
  const absl::Status& Await() { return call_.Await(); }
  bool done() const { return call_.done(); }

 private:
  AsyncCall<trial::Text> call_;
};

class PayloadLimits : public TrialTest {
 protected:
  Buffer MakeBuffer(uint64_t bytes) { return Must(pool_.Allocate(bytes)); }
  absl::Status Make(trial::Trial::Stub& stub, uint64_t bytes) {
    ClientContext context;
    context.set_timeout(milliseconds(20'000));
    trial::MakeRequest request;
    request.set_bytes(bytes);
    trial::Text response;
    return stub.Make(&context, request, &response);
  }

  BufferPool pool_;
};

TEST_F(PayloadLimits, ARequestOverTheServersConnectionBudgetIsRefusedWithItsName) {
  StartServer([](ServerOptions& options) { options.endpoint.payload_bytes_max = 4 * kMiB; });
  auto stub = MakeStub();
  const absl::Status status = Upload(*stub, MakeBuffer(8 * kMiB)).Await();
  EXPECT_THAT(status, Is(absl::StatusCode::kResourceExhausted, "memory budget of the connection"));
  EXPECT_THAT(status, Is(absl::StatusCode::kResourceExhausted, "4194304"));
  EXPECT_THAT(Upload(*stub, MakeBuffer(kMiB)).Await(), IsOk());
}

TEST_F(PayloadLimits, AResponseOverTheClientsConnectionBudgetIsRefusedWithItsName) {
  StartServer();
  ChannelOptions options;
  options.endpoint.payload_bytes_max = 4 * kMiB;
  auto stub = MakeStub(options);
  EXPECT_THAT(Make(*stub, 8 * kMiB),
              Is(absl::StatusCode::kResourceExhausted, "memory budget of the connection"));
  EXPECT_THAT(Make(*stub, kMiB), IsOk());
}

TEST_F(PayloadLimits, ARequestThatWouldFitWaitsUntilMemoryComesBack) {
  StartServer([](ServerOptions& options) { options.endpoint.payload_bytes_max = RoomForOne(); });
  auto stub = MakeStub();
  ASSERT_THAT(Upload(*stub, MakeBuffer(8 * kMiB)).Await(), IsOk());
  Upload second(*stub, MakeBuffer(8 * kMiB));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_FALSE(second.done()) << "the service keeps what came first";
  EXPECT_THAT(Echo(*stub, "small ones pass").status, IsOk());
  service_.DropKept();
  EXPECT_THAT(second.Await(), IsOk());
}

TEST_F(PayloadLimits, ARequestWaitsForMemoryForSomeSecondsOnly) {
  StartServer([](ServerOptions& options) { options.endpoint.payload_bytes_max = RoomForOne(); });
  auto stub = MakeStub();
  ASSERT_THAT(Upload(*stub, MakeBuffer(8 * kMiB)).Await(), IsOk());
  EXPECT_THAT(Upload(*stub, MakeBuffer(8 * kMiB)).Await(),
              Is(absl::StatusCode::kResourceExhausted, "memory budget of the connection"));
  service_.DropKept();
  EXPECT_THAT(Upload(*stub, MakeBuffer(8 * kMiB)).Await(), IsOk());
}

TEST_F(PayloadLimits, ConnectionsShareTheProcessBudgetAndResumeAsMemoryReturns) {
  auto budget = std::make_shared<MemoryBudget>("the budget of this test", RoomForOne());
  StartServer([&](ServerOptions& options) { options.endpoint.process_budget = budget; });
  auto greedy = MakeStub();
  auto other = MakeStub();
  ASSERT_THAT(Upload(*greedy, MakeBuffer(8 * kMiB)).Await(), IsOk());
  EXPECT_GE(budget->bytes_in_use(), 8 * kMiB);
  EXPECT_THAT(Echo(*other, std::string(kMiB, 'x')).status, IsOk()) << "what fits goes on";
  EXPECT_THAT(Upload(*other, MakeBuffer(RoomForOne() + kMiB)).Await(),
              Is(absl::StatusCode::kResourceExhausted, "the budget of this test"));
  Upload waits(*other, MakeBuffer(8 * kMiB));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(waits.done());
  service_.DropKept();
  // The greedy connection holds what came back for its next message, until it is idle.
  EXPECT_THAT(waits.Await(), IsOk());
  service_.DropKept();
  StopServer();
  EXPECT_TRUE(WaitUntil([&] { return budget->bytes_in_use() == 0; }));
}

TEST_F(PayloadLimits, AWaitThatIsCancelledEndsAndTheNextIsServed) {
  StartServer([](ServerOptions& options) { options.endpoint.payload_bytes_max = RoomForOne(); });
  auto stub = MakeStub();
  ASSERT_THAT(Upload(*stub, MakeBuffer(8 * kMiB)).Await(), IsOk());
  EXPECT_THAT(Upload(*stub, MakeBuffer(8 * kMiB), milliseconds(50)).Await(),
              Is(absl::StatusCode::kDeadlineExceeded, ""));
  service_.DropKept();
  EXPECT_THAT(Upload(*stub, MakeBuffer(8 * kMiB)).Await(), IsOk());
}

TEST_F(PayloadLimits, IdleConnectionsGiveTheirMemoryBack) {
  auto budget = std::make_shared<MemoryBudget>("the budget of this test", 256 * kMiB);
  StartServer([&](ServerOptions& options) { options.endpoint.process_budget = budget; });
  auto stub = MakeStub();
  ASSERT_THAT(Echo(*stub, std::string(10 * kMiB, 'x')).status, IsOk());
  EXPECT_GE(budget->bytes_in_use(), 20 * kMiB) << "a zone, and a response put together";
  EXPECT_TRUE(WaitUntil([&] { return budget->bytes_in_use() == 0; }));
  EXPECT_THAT(Echo(*stub, std::string(10 * kMiB, 'x')).status, IsOk());
}

// Whatever the moment at which a call ends, no byte of its memory changes afterwards.
TEST_F(PayloadLimits, NothingChangesAfterADeadlineInTheMiddleOfAResponse) {
  StartServer();
  auto stub = MakeConnectedStub();
  Random random(4);
  std::vector<std::byte> memory(16 * kMiB);
  int early = 0;
  for (int round = 0; round < 60; ++round) {
    std::fill(memory.begin(), memory.end(), std::byte{0x5a});
    ClientContext context;
    context.set_timeout(std::chrono::microseconds(random.Below(15'000)));
    context.set_response_bytes_max(round % 2 == 0 ? memory.size() : 0);
    context.set_response_memory(memory);
    trial::MakeRequest request;
    request.set_bytes(memory.size());
    request.set_seed(static_cast<uint64_t>(round));
    trial::Text response;
    const absl::Status status = stub->Make(&context, request, &response);
    if (status.ok()) {
      EXPECT_EQ(PatternMismatch(memory, static_cast<uint64_t>(round)), memory.size());
      continue;
    }
    ++early;
    EXPECT_THAT(status, Is(absl::StatusCode::kDeadlineExceeded, ""));
    EXPECT_TRUE(Echo(*stub, "a round trip for what may be on its way").status.ok());
    EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0x5a}),
              static_cast<ptrdiff_t>(memory.size()));
  }
  EXPECT_GT(early, 0);
  EXPECT_EQ(channels_[0]->statistics().disconnects, 0u);
}

TEST_F(PayloadLimits, DeadlinesInTheMiddleOfRequestsLeaveTheConnectionWhole) {
  StartServer();
  auto stub = MakeConnectedStub();
  Random random(5);
  const Buffer buffer = MakeBuffer(16 * kMiB);
  FillPattern(buffer.span(), 7);
  for (int round = 0; round < 60; ++round) {
    ClientContext context;
    context.set_timeout(std::chrono::microseconds(random.Below(15'000)));
    context.AddAttachment(buffer);
    trial::Text response;
    const absl::Status status = stub->Mirror(&context, MakeText("x"), &response);
    if (status.ok()) {
      EXPECT_EQ(PatternMismatch(context.response_attachments()[0].buffer.span(), 7), buffer.size());
    } else {
      EXPECT_THAT(status, Is(absl::StatusCode::kDeadlineExceeded, ""));
    }
  }
  ClientContext context;
  context.set_timeout(milliseconds(20'000));
  context.AddAttachment(buffer);
  trial::Text response;
  ASSERT_THAT(stub->Mirror(&context, MakeText("x"), &response), IsOk());
  EXPECT_EQ(PatternMismatch(context.response_attachments()[0].buffer.span(), 7), buffer.size());
  EXPECT_EQ(channels_[0]->statistics().disconnects, 0u);
}

// ---- Many at once ----

class Mix {
 public:
  Mix(trial::Trial::Stub& stub, BufferPool& pool, int calls, int in_flight)
      : stub_(stub), pool_(pool), left_(calls) {
    for (int i = 0; i < in_flight; ++i) slots_.push_back(std::make_unique<Slot>());
  }
  void Run() {
    for (auto& slot : slots_) Start(*slot);
    EXPECT_TRUE(WaitUntil([this] { return ended_ == static_cast<int>(slots_.size()); }));
  }

 private:
  struct Slot {
    std::unique_ptr<ClientContext> context;
    trial::Text request;
    trial::Text response;
    std::vector<uint64_t> seeds;
    std::vector<size_t> sizes;
  };
  // On the channel's thread, but for the first of each slot.
  void Start(Slot& slot) {
    uint64_t number;
    {
      std::lock_guard lock(mutex_);
      if (left_ == 0) {
        ++ended_;
        return;
      }
      number = static_cast<uint64_t>(--left_);
    }
    Random random(number);
    slot.context = std::make_unique<ClientContext>();
    slot.context->set_timeout(milliseconds(60'000));
    slot.request.set_text(std::string(Size(random), 't'));
    slot.seeds.clear();
    slot.sizes.clear();
    for (uint64_t i = random.Below(3); i > 0; --i) {
      slot.sizes.push_back(Size(random));
      slot.seeds.push_back(random.Next());
      Buffer buffer = Must(pool_.Allocate(slot.sizes.back()));
      FillPattern(buffer.span(), slot.seeds.back());
      slot.context->AddAttachment(std::move(buffer));
    }
    if (random.Below(2) == 0) slot.context->set_response_bytes_max(Size(random));
    stub_.async()->Mirror(slot.context.get(), &slot.request, &slot.response,
                          [this, &slot](absl::Status status) { End(slot, status); });
  }
  void End(Slot& slot, const absl::Status& status) {
    EXPECT_THAT(status, IsOk());
    EXPECT_TRUE(slot.response.text() == slot.request.text());
    const AttachmentList& attachments = slot.context->response_attachments();
    EXPECT_EQ(attachments.size(), slot.sizes.size());
    for (size_t i = 0; i < std::min(attachments.size(), slot.sizes.size()); ++i) {
      EXPECT_EQ(attachments[i].buffer.size(), slot.sizes[i]);
      EXPECT_EQ(PatternMismatch(attachments[i].buffer.span(), slot.seeds[i]), slot.sizes[i]);
    }
    Start(slot);
  }
  // From nothing to 256 KiB, as many short as long.
  static size_t Size(Random& random) {
    const uint64_t bits = random.Below(19);
    return random.Below((uint64_t{1} << bits) + 1);
  }

  trial::Trial::Stub& stub_;
  BufferPool& pool_;
  std::mutex mutex_;
  int left_;
  std::atomic<int> ended_{0};
  std::vector<std::unique_ptr<Slot>> slots_;
};

TEST_F(PayloadLimits, TenThousandMessagesOfAllSizesWithSixtyFourInFlight) {
  StartServer();
  auto stub = MakeStub();
  const bool in_vm = !Environment("VERBENA_TEST_HOST").empty();  // Emulated: fifty times slower.
  Mix(*stub, pool_, in_vm ? 500 : 10'000, 64).Run();
}

TEST_F(PayloadLimits, ManyMessagesToHandlersOnThreads) {
  StartServerOnExecutor(3);
  auto stub = MakeStub();
  Mix(*stub, pool_, 300, 64).Run();
}

}  // namespace
}  // namespace verbena
