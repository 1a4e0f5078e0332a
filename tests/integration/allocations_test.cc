// SPDX-License-Identifier: Apache-2.0
//
// Heap allocations of a call in steady state, of both sides: none, besides what Protobuf makes for
// the fields of a message (here none either, since messages are used again).

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>

#include "tests/integration/flat_trial_service.h"
#include "verbena/tests/integration/trial_fixture.h"

namespace {

// Of all threads of this process, so of both sides.
std::atomic<int64_t> allocations{0};

void* Allocate(size_t bytes, size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes == 0 ? 1 : bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes, 1); }
void* operator new[](size_t bytes) { return Allocate(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace verbena {
namespace {

constexpr int kWarmUp = 2000;
constexpr int kCalls = 10'000;

class Allocations : public TrialTest {
 protected:
  // One call after the other, in the blocking form.
  int64_t CountBlocking(trial::Trial::Stub& stub, const std::string& text, bool deadline) {
    const trial::Text request = MakeText(text);
    trial::Text response;
    int64_t before = 0;
    for (int i = -kWarmUp; i < kCalls; ++i) {
      if (i == 0) before = allocations.load();
      ClientContext context;
      if (deadline) context.set_timeout(std::chrono::seconds(20));
      if (!stub.Echo(&context, request, &response).ok()) ADD_FAILURE() << "a call failed";
    }
    return allocations.load() - before;
  }
  // The same with an attachment, there and back.
  int64_t CountMirrored(trial::Trial::Stub& stub, const Buffer& attachment, int calls) {
    const trial::Text request = MakeText("x");
    trial::Text response;
    int64_t before = 0;
    for (int i = -calls / 2; i < calls; ++i) {
      if (i == 0) before = allocations.load();
      ClientContext context;
      context.set_timeout(std::chrono::seconds(20));
      context.set_response_bytes_max(attachment.size());
      context.AddAttachment(attachment);
      if (!stub.Mirror(&context, request, &response).ok()) ADD_FAILURE() << "a call failed";
    }
    return allocations.load() - before;
  }
};

class FlatAllocations : public Allocations {
 protected:
  ~FlatAllocations() override { TearDownAll(); }
  void RegisterMore(ServerBuilder& builder) override { builder.RegisterService(&flat_service_); }

  // One call after the other; request and response are built anew, or sent on as they are.
  int64_t Count(const std::shared_ptr<Channel>& channel, bool build, size_t bytes) {
    auto stub = flat_trial::FlatTrial::NewStub(channel);
    const std::string text(bytes, 'x');
    FlatMessageBuilder builder(*channel, bytes + 256);
    Flat<flat_trial::Text> request = BuildText(builder, text);
    Flat<flat_trial::Text> response;
    int64_t before = 0;
    for (int i = -kWarmUp; i < kCalls; ++i) {
      if (i == 0) before = allocations.load();
      ClientContext context;
      context.set_timeout(std::chrono::seconds(20));
      if (build) {
        request.Clear();
        request = BuildText(builder, text);
      }
      const absl::Status status = build ? stub->Echo(&context, request, &response)
                                        : stub->Forward(&context, request, &response);
      if (!status.ok()) ADD_FAILURE() << status;
    }
    const int64_t count = allocations.load() - before;
    EXPECT_EQ(TextOf(response), text);
    return count;
  }

  FlatTrialService flat_service_;
};

// 64 calls in flight, each started by the callback of the one before.
class CallbackPump {
 public:
  CallbackPump(trial::Trial::Stub& stub, const std::string& text) : stub_(stub) {
    for (Slot& slot : slots_) {
      slot.pump = this;
      slot.request = MakeText(text);
    }
  }
  int64_t Count() {
    for (Slot& slot : slots_) Next(&slot);
    EXPECT_TRUE(WaitUntil([this] { return idle_ == static_cast<int>(slots_.size()); }));
    EXPECT_EQ(failed_, 0);
    return after_ - before_;
  }

 private:
  struct Slot {
    CallbackPump* pump;
    std::optional<ClientContext> context;
    trial::Text request;
    trial::Text response;
  };
  void Next(Slot* slot) {
    const int number = started_.fetch_add(1);
    if (number == kWarmUp) before_ = allocations.load();
    if (number == kWarmUp + kCalls) after_ = allocations.load();
    if (number >= kWarmUp + kCalls) {
      ++idle_;
      return;
    }
    slot->context.emplace();
    // One pointer: std::function keeps it in place.
    stub_.async()->Echo(&*slot->context, &slot->request, &slot->response,
                        [slot](absl::Status status) {
                          slot->pump->failed_ += status.ok() ? 0 : 1;
                          slot->pump->Next(slot);
                        });
  }

  trial::Trial::Stub& stub_;
  std::array<Slot, 64> slots_;
  std::atomic<int> started_{0};
  std::atomic<int> idle_{0};
  std::atomic<int> failed_{0};
  std::atomic<int64_t> before_{0};
  std::atomic<int64_t> after_{0};
};

TEST_F(Allocations, TheCounterCounts) {
  const int64_t before = allocations.load();
  auto text = std::make_unique<std::string>(1000, 'x');
  EXPECT_EQ(allocations.load() - before, 2);
}

TEST_F(Allocations, ABlockingCallMakesNone) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_EQ(CountBlocking(*stub, std::string(64, 'x'), /*deadline=*/false), 0);
}

TEST_F(Allocations, ABlockingCallWithADeadlineMakesNone) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_EQ(CountBlocking(*stub, std::string(64, 'x'), /*deadline=*/true), 0);
}

TEST_F(Allocations, ABlockingCallThatFillsASlotMakesNone) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_EQ(CountBlocking(*stub, std::string(4000, 'x'), /*deadline=*/true), 0);
}

TEST_F(Allocations, ABlockingCallInEventModeMakesNone) {
  StartServer([](ServerOptions& options) { options.poll.mode = PollOptions::Mode::kEvent; });
  ChannelOptions options;
  options.poll.mode = PollOptions::Mode::kEvent;
  auto stub = MakeStub(options);
  EXPECT_EQ(CountBlocking(*stub, std::string(64, 'x'), /*deadline=*/true), 0);
}

// Long messages: a block may be made when two happen to be in use at once for the first time, or
// again after a second in which it was not needed. So the fewest of some rounds.
template <class Count>
int64_t FewestOfRounds(Count count) {
  int64_t fewest = count();
  for (int round = 1; round < 5 && fewest != 0; ++round) fewest = std::min(fewest, count());
  return fewest;
}

TEST_F(Allocations, ABlockingCallThatIsTooLongForASlotMakesNone) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_EQ(FewestOfRounds(
                [&] { return CountBlocking(*stub, std::string(20'000, 'x'), /*deadline=*/true); }),
            0);
}

TEST_F(Allocations, AttachmentsOfAnySizeMakeNone) {
  StartServer();
  auto stub = MakeStub();
  BufferPool pool;
  for (const size_t bytes : {size_t{100}, size_t{100'000}, size_t{1} << 20}) {
    const Buffer attachment = Must(pool.Allocate(bytes));
    EXPECT_EQ(FewestOfRounds([&] { return CountMirrored(*stub, attachment, 2000); }), 0) << bytes;
  }
}

TEST_F(Allocations, SixtyFourCallsInFlightFromCallbacksMakeNone) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_EQ(CallbackPump(*stub, std::string(64, 'x')).Count(), 0);
}

TEST_F(Allocations, SixtyFourLargeCallsInFlightFromCallbacksMakeNone) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_EQ(CallbackPump(*stub, std::string(2000, 'x')).Count(), 0);
}

TEST_F(FlatAllocations, ACallWithFlatBuffersMakesNone) {
  StartServer();
  auto channel = MakeChannel();
  ASSERT_THAT(channel->WaitForConnected(milliseconds(20'000)), IsOk());
  // What is not inline is kept until its send is known to be over: blocks are made as for long
  // messages.
  for (const size_t bytes : {64, 3900, 20'000}) {
    for (const bool build : {true, false}) {
      EXPECT_EQ(FewestOfRounds([&] { return Count(channel, build, bytes); }), 0)
          << bytes << " bytes" << (build ? ", built" : "");
    }
  }
}

}  // namespace
}  // namespace verbena
