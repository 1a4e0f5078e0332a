// SPDX-License-Identifier: Apache-2.0
//
// FlatBuffers as messages, end to end: beside Protobuf on one server, of every size, in place and
// without a copy, kept, invalid, and through the ends of connections.

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/flat_trial_service.h"
#include "verbena/base/random.h"
#include "verbena/rpc/flat_message.h"
#include "verbena/tests/integration/trial_fixture.h"
#include "verbena/tests/support/pattern.h"
#include "verbena/tests/support/vm_environment.h"

namespace verbena {
namespace {

using flat_trial::FlatTrial;
using flat_trial::Text;

// EndpointOptions::slot_bytes and kSlotColourBytes.
constexpr uint64_t kSlotStride = 4096 + 64;

std::string Pattern(size_t bytes, uint64_t seed) {
  std::string text(bytes, '\0');
  FillPattern(std::as_writable_bytes(std::span(text)), seed);
  return text;
}

class FlatBuffers : public TrialTest {
 protected:
  ~FlatBuffers() override { TearDownAll(); }  // The server goes before its services.
  void RegisterMore(ServerBuilder& builder) override { builder.RegisterService(&flat_service_); }

  // A connected channel: what is built for it is in its memory.
  std::shared_ptr<Channel> Connect(ChannelOptions options = {}) {
    std::shared_ptr<Channel> channel = MakeChannel(std::move(options));
    EXPECT_THAT(channel->WaitForConnected(milliseconds(20'000)), IsOk());
    return channel;
  }
  template <class Request, class Response>
  absl::Status Call(absl::Status (FlatTrial::Stub::*method)(ClientContext*, const Flat<Request>&,
                                                            Flat<Response>*),
                    FlatTrial::Stub& stub, const Flat<Request>& request, Flat<Response>* response) {
    ClientContext context;
    context.set_timeout(milliseconds(20'000));
    return (stub.*method)(&context, request, response);
  }
  uint64_t Copied(const Channel& channel) const {
    return channel.statistics().payload_bytes_copied + server_->statistics().payload_bytes_copied;
  }
  // What lands is copied out where there are no memory windows.
  bool LandsWithoutCopies() const { return Environment("VERBENA_TEST_DEVICE") != "siw"; }

  FlatTrialService flat_service_;
};

TEST_F(FlatBuffers, AreServedBesideProtobufByOneServer) {
  StartServer();
  auto channel = Connect();
  auto flat = FlatTrial::NewStub(channel);
  auto protobuf = trial::Trial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  Flat<Text> response;
  for (int i = 0; i < 100; ++i) {
    const std::string text = std::to_string(i);
    EXPECT_EQ(Echo(*protobuf, text).text, text);
    ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *flat, BuildText(builder, text), &response), IsOk());
    EXPECT_EQ(TextOf(response), text);
  }
}

TEST_F(FlatBuffers, OfEverySizeArriveWholeAndUncopied) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  Flat<Text> response;
  std::vector<size_t> sizes;
  for (size_t size = 0; size < 400; ++size) sizes.push_back(size);      // Inline, and beyond.
  for (size_t size = 3900; size < 4200; ++size) sizes.push_back(size);  // Slots, and beyond.
  for (size_t size = 8192; size <= size_t{16} << 20; size *= 2) sizes.push_back(size + 1);
  for (const size_t size : sizes) {
    const std::string text = Pattern(size, size);
    ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, text), &response), IsOk())
        << size;
    ASSERT_TRUE(TextOf(response) == text) << size;
    ASSERT_THAT(Call(&FlatTrial::Stub::Forward, *stub, BuildText(builder, text), &response), IsOk())
        << size;
    ASSERT_TRUE(TextOf(response) == text) << size;
  }
  if (LandsWithoutCopies()) {
    EXPECT_EQ(Copied(*channel), 0u);
  }
}

TEST_F(FlatBuffers, AreReadInTheReceiveSlots) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  uint64_t last = 0;
  int steps = 0;
  for (int i = 0; i < 8; ++i) {
    Flat<flat_trial::Where> where;
    ASSERT_THAT(Call(&FlatTrial::Stub::Keep, *stub, BuildText(builder, "slot"), &where), IsOk());
    // Slots are used in the order in which they were posted, side by side at first.
    steps += where->address() - last == kSlotStride ? 1 : 0;
    last = where->address();
  }
  EXPECT_EQ(steps, 7);
}

TEST_F(FlatBuffers, AreReadWhereTheyLandedAndStayThere) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < 5; ++i) {
    Flat<flat_trial::Where> where;
    ASSERT_THAT(
        Call(&FlatTrial::Stub::Keep, *stub, BuildText(builder, Pattern(100'000, i)), &where),
        IsOk());
    addresses.push_back(where->address());
  }
  const std::vector<Flat<Text>> kept = flat_service_.TakeKept();
  ASSERT_EQ(kept.size(), 5u);
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(reinterpret_cast<uint64_t>(kept[i].bytes().data()), addresses[i]);
    EXPECT_TRUE(TextOf(kept[i]) == Pattern(100'000, i)) << i;
  }
}

// More than may stay in the ring: the others are copied, and calls go on.
TEST_F(FlatBuffers, MayBeKeptByHandlersWithoutEnd) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  constexpr int kKept = 500;
  Flat<flat_trial::Where> where;
  for (int i = 0; i < kKept; ++i) {
    ASSERT_THAT(Call(&FlatTrial::Stub::Keep, *stub, BuildText(builder, std::to_string(i)), &where),
                IsOk());
  }
  std::vector<Flat<Text>> kept = flat_service_.TakeKept();
  ASSERT_EQ(kept.size(), size_t{kKept});
  size_t copied = 0;
  for (int i = 0; i < kKept; ++i) {
    EXPECT_EQ(TextOf(kept[i]), std::to_string(i));
    // The first quarter of the ring's 128 slots is lent.
    if (i >= 32) copied += kept[i].bytes().size();
  }
  EXPECT_EQ(Copied(*channel), copied);
  // Let go of on this thread, which is not the poller's: their slots come back.
  kept.clear();
  for (int i = 0; i < kKept; ++i) {
    ASSERT_THAT(Call(&FlatTrial::Stub::Keep, *stub, BuildText(builder, std::to_string(i)), &where),
                IsOk());
    flat_service_.TakeKept();
  }
  EXPECT_EQ(Copied(*channel), copied);
}

TEST_F(FlatBuffers, MayBeKeptByCallersWithoutEnd) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  constexpr int kKept = 500;
  std::vector<Flat<Text>> responses(kKept);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kKept; ++i) {
      ASSERT_THAT(
          Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, std::to_string(i)), &responses[i]),
          IsOk());
    }
    for (int i = 0; i < kKept; ++i) EXPECT_EQ(TextOf(responses[i]), std::to_string(i));
  }
}

TEST_F(FlatBuffers, OutliveTheirConnection) {
  StartServer();
  Flat<Text> response;
  {
    auto channel = CreateChannel(target_);
    ASSERT_THAT(channel->WaitForConnected(milliseconds(20'000)), IsOk());
    auto stub = FlatTrial::NewStub(channel);
    FlatMessageBuilder builder(*channel);
    Flat<flat_trial::Where> where;
    ASSERT_THAT(Call(&FlatTrial::Stub::Keep, *stub, BuildText(builder, "short"), &where), IsOk());
    ASSERT_THAT(
        Call(&FlatTrial::Stub::Keep, *stub, BuildText(builder, Pattern(100'000, 1)), &where),
        IsOk());
    ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, "answer"), &response),
                IsOk());
  }
  StopServer();
  const std::vector<Flat<Text>> kept = flat_service_.TakeKept();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(TextOf(kept[0]), "short");
  EXPECT_TRUE(TextOf(kept[1]) == Pattern(100'000, 1));
  EXPECT_EQ(TextOf(response), "answer");
}

// The handler reads its request when the client is long gone, and all its slots with it.
TEST_F(FlatBuffers, AreThereForAHandlerWhoseConnectionIsGone) {
  StartServerOnExecutor(1);
  auto call = std::make_unique<AsyncCall<Flat<Text>, Flat<Text>>>();
  {
    auto channel = CreateChannel(target_);
    ASSERT_THAT(channel->WaitForConnected(milliseconds(20'000)), IsOk());
    auto stub = FlatTrial::NewStub(channel);
    FlatMessageBuilder builder(*channel);
    call->request = BuildText(builder, "are you there?");
    stub->async()->Linger(&call->context, &call->request, &call->response, call->Done());
    EXPECT_TRUE(WaitUntil([&] { return flat_service_.lingering == 1; }));
  }
  EXPECT_THAT(call->Await(), Is(absl::StatusCode::kCancelled, ""));
  EXPECT_TRUE(WaitUntil([&] { return flat_service_.lingers_for_nobody.load(); }));
  std::this_thread::sleep_for(milliseconds(50));  // The endpoint drains, and is freed.
  flat_service_.go_on = true;
  EXPECT_TRUE(WaitUntil([&] { return flat_service_.lingering == 0; }));
  StopServer();
  EXPECT_EQ(flat_service_.last_lingered, "are you there?");
}

TEST_F(FlatBuffers, OnAnExecutorAreReadInPlace) {
  StartServerOnExecutor(2);
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  Flat<Text> response;
  for (const size_t size : {0, 1, 64, 300, 3900, 5000, 1 << 20}) {
    for (int i = 0; i < 50; ++i) {
      const std::string text = Pattern(size, i);
      ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, text), &response), IsOk());
      ASSERT_TRUE(TextOf(response) == text) << size;
    }
  }
  if (LandsWithoutCopies()) {
    EXPECT_EQ(Copied(*channel), 0u);
  }
}

// Many at once from several threads, with messages of all kinds in between.
TEST_F(FlatBuffers, OfManyThreadsDoNotMixUp) {
  StartServerOnExecutor(2);
  auto channel = Connect();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto stub = FlatTrial::NewStub(channel);
      FlatMessageBuilder builder(*channel);
      Random random(t);
      std::vector<Flat<Text>> responses(40);
      for (int i = 0; i < 2000; ++i) {
        const size_t size = random.Below(4) == 0 ? random.Below(20'000) : random.Below(300);
        const std::string text = Pattern(size, i * 4 + t);
        Flat<Text>& response = responses[random.Below(responses.size())];
        const Flat<Text> request = BuildText(builder, text);
        ASSERT_THAT(random.Below(2) == 0
                        ? Call(&FlatTrial::Stub::Echo, *stub, request, &response)
                        : Call(&FlatTrial::Stub::Forward, *stub, request, &response),
                    IsOk());
        ASSERT_TRUE(TextOf(response) == text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One message, sent by many calls at the same time.
TEST_F(FlatBuffers, MayBeSentManyTimesAtOnce) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  for (const size_t size : {10, 1000, 50'000}) {
    FlatMessageBuilder builder(*channel);
    const Flat<Text> request = BuildText(builder, Pattern(size, size));
    std::vector<std::unique_ptr<AsyncCall<int, Flat<Text>>>> calls;
    for (int i = 0; i < 100; ++i) {
      calls.push_back(std::make_unique<AsyncCall<int, Flat<Text>>>());
      stub->async()->Echo(&calls[i]->context, &request, &calls[i]->response, calls[i]->Done());
    }
    for (auto& call : calls) {
      EXPECT_THAT(call->Await(), IsOk());
      EXPECT_TRUE(TextOf(call->response) == Pattern(size, size));
    }
  }
}

// One object for both, as Protobuf messages may be.
TEST_F(FlatBuffers, MayBeRequestAndResponseAtOnce) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  for (const size_t size : {10, 1000, 100'000}) {
    for (const uint64_t expected : {uint64_t{0}, uint64_t{1} << 20}) {
      Flat<Text> message = BuildText(builder, Pattern(size, size));
      ClientContext context;
      context.set_timeout(milliseconds(20'000));
      context.set_response_bytes_max(expected);
      ASSERT_THAT(stub->Echo(&context, message, &message), IsOk()) << size;
      EXPECT_TRUE(TextOf(message) == Pattern(size, size));
    }
  }
}

// ---- What is in them ----

TEST_F(FlatBuffers, CarryEveryKindOfField) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  flatbuffers::FlatBufferBuilder inner;
  flat_trial::FinishTaggedBuffer(inner, flat_trial::CreateTagged(inner, inner.CreateString("in")));
  FlatMessageBuilder builder(*channel);
  std::vector<flatbuffers::Offset<flat_trial::Tree>> children;
  children.push_back(
      flat_trial::CreateTree(builder, builder.CreateString("a"), 7, 0, flat_trial::Any_Tagged,
                             flat_trial::CreateTagged(builder, builder.CreateString("t")).Union()));
  const flat_trial::Wide wide(1, 2, 3, 4.5);
  children.push_back(flat_trial::CreateTree(builder, 0, flatbuffers::nullopt, 0,
                                            flat_trial::Any_Aligned,
                                            flat_trial::CreateAligned(builder, &wide).Union()));
  const auto child_vector = builder.CreateVector(children);
  const auto nested = builder.CreateVector(inner.GetBufferPointer(), inner.GetSize());
  builder.Finish(flat_trial::CreateTree(builder, builder.CreateString("root"), 0, child_vector,
                                        flat_trial::Any_NONE, 0, nested));
  Flat<Text> response;
  ASSERT_THAT(
      Call(&FlatTrial::Stub::Walk, *stub, builder.ReleaseMessage<flat_trial::Tree>(), &response),
      IsOk());
  EXPECT_EQ(TextOf(response), "root=0;tagged in;a=7;tagged t;-;wide 4.5;");
}

TEST_F(FlatBuffers, MustHaveTheFileIdentifierOfTheirSchema) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  flat_trial::FinishTaggedBuffer(builder,
                                 flat_trial::CreateTagged(builder, builder.CreateString("yes")));
  Flat<flat_trial::Tagged> response;
  ASSERT_THAT(
      Call(&FlatTrial::Stub::Tag, *stub, builder.ReleaseMessage<flat_trial::Tagged>(), &response),
      IsOk());
  EXPECT_EQ(response->name()->str(), "yes");

  builder.Finish(flat_trial::CreateTagged(builder, builder.CreateString("no identifier")));
  EXPECT_THAT(
      Call(&FlatTrial::Stub::Tag, *stub, builder.ReleaseMessage<flat_trial::Tagged>(), &response),
      Is(absl::StatusCode::kInvalidArgument, "file identifier"));
  EXPECT_EQ(flat_service_.calls, 1);
}

TEST_F(FlatBuffers, WithWideFieldsAreAlignedOnArrival) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  const flat_trial::Wide wide(1, 2, 3, 4);
  for (const size_t size : {0, 1, 100, 3000, 10'000}) {
    const std::vector<uint8_t> text(size, 't');
    const auto vector = builder.CreateVector(text);
    builder.Finish(flat_trial::CreateAligned(builder, &wide, vector));
    Flat<flat_trial::Aligned> response;
    ASSERT_THAT(Call(&FlatTrial::Stub::Align, *stub, builder.ReleaseMessage<flat_trial::Aligned>(),
                     &response),
                IsOk());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(response->wide()) % 32, 0u);
    EXPECT_EQ(response->wide()->z(), 3);
    EXPECT_EQ(response->text()->size(), size);
  }
  EXPECT_GT(Copied(*channel), 0u);
}

// ---- What is wrong with them ----

TEST_F(FlatBuffers, ThatWereNotBuiltAreRefusedBeforeTheyAreSent) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  Flat<Text> request, response;
  EXPECT_THAT(Call(&FlatTrial::Stub::Echo, *stub, request, &response),
              Is(absl::StatusCode::kInvalidArgument, "FlatMessageBuilder"));
  FlatMessageBuilder builder(*channel);
  builder.CreateString("never finished");
  request = builder.ReleaseMessage<Text>();
  EXPECT_TRUE(request.empty());
  EXPECT_EQ(request.GetRoot(), nullptr);
  EXPECT_THAT(Call(&FlatTrial::Stub::Echo, *stub, request, &response),
              Is(absl::StatusCode::kInvalidArgument, "Finish"));
  EXPECT_EQ(flat_service_.calls, 0);
}

TEST_F(FlatBuffers, AHandlerThatSetsNoResponseIsToldOn) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  Flat<Text> response;
  EXPECT_THAT(Call(&FlatTrial::Stub::Nothing, *stub, BuildText(builder, "x"), &response),
              Is(absl::StatusCode::kInternal, "flat_trial.FlatTrial/Nothing"));
}

// Every byte of a message is broken in turn. Either the verifier finds that out, and the handler
// never sees the message, or what the handler reads is inside of it (AddressSanitizer looks).
TEST_F(FlatBuffers, ThatAreBrokenNeverReachTheHandler) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  flatbuffers::FlatBufferBuilder inner;
  flat_trial::FinishTaggedBuffer(inner, flat_trial::CreateTagged(inner, inner.CreateString("in")));
  const auto child =
      flat_trial::CreateTree(builder, builder.CreateString("child"), 7, 0, flat_trial::Any_Tagged,
                             flat_trial::CreateTagged(builder, builder.CreateString("t")).Union());
  const auto children = builder.CreateVector(&child, 1);
  const auto nested = builder.CreateVector(inner.GetBufferPointer(), inner.GetSize());
  builder.Finish(flat_trial::CreateTree(builder, builder.CreateString("root"), 0, children,
                                        flat_trial::Any_NONE, 0, nested));
  const Flat<flat_trial::Tree> good = builder.ReleaseMessage<flat_trial::Tree>();
  int refused = 0;
  int served = 0;
  for (size_t at = 0; at < good.bytes().size(); ++at) {
    for (const uint8_t change : {0x01, 0x10, 0x80, 0xff}) {
      std::vector<std::byte> bytes(good.bytes().begin(), good.bytes().end());
      bytes[at] ^= std::byte{change};
      Flat<flat_trial::Tree> bad;
      bad.CopyFrom(bytes);
      Flat<Text> response;
      const absl::Status status = Call(&FlatTrial::Stub::Walk, *stub, bad, &response);
      if (status.ok()) {
        ++served;
      } else {
        ASSERT_THAT(status,
                    Is(absl::StatusCode::kInvalidArgument, "not a valid FlatBuffer of its table"));
        ++refused;
      }
    }
  }
  EXPECT_EQ(flat_service_.calls, served);
  EXPECT_GT(refused, 100);
  EXPECT_GT(served, 100);  // Characters, numbers and padding.

  // Cut off, anywhere but in the padding at the end; in slots and landed.
  for (size_t bytes = 1; bytes + 8 < good.bytes().size(); bytes += 3) {
    Flat<flat_trial::Tree> bad;
    bad.CopyFrom(good.bytes().first(bytes));
    Flat<Text> response;
    EXPECT_THAT(Call(&FlatTrial::Stub::Walk, *stub, bad, &response),
                Is(absl::StatusCode::kInvalidArgument, ""))
        << bytes;
  }
  Flat<Text> landed;
  landed.CopyFrom(std::vector<std::byte>(100'000, std::byte{0xee}));
  Flat<Text> response;
  EXPECT_THAT(Call(&FlatTrial::Stub::Echo, *stub, landed, &response),
              Is(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_EQ(flat_service_.calls, served);
}

// A short message that says the same tables again and again would keep a verifier busy for ever.
TEST_F(FlatBuffers, ThatRepeatThemselvesAreRefusedSoon) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  flatbuffers::Offset<flat_trial::Tree> tree = flat_trial::CreateTree(builder);
  for (int depth = 0; depth < 20; ++depth) {  // 8^20 of them.
    const std::vector<flatbuffers::Offset<flat_trial::Tree>> same(8, tree);
    const auto children = builder.CreateVector(same);
    tree = flat_trial::CreateTree(builder, 0, flatbuffers::nullopt, children);
  }
  builder.Finish(tree);
  Flat<Text> response;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(
      Call(&FlatTrial::Stub::Walk, *stub, builder.ReleaseMessage<flat_trial::Tree>(), &response),
      Is(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// ---- Memory ----

TEST_F(FlatBuffers, BuiltBeforeThereIsAConnectionAreCopied) {
  StartServer();
  auto channel = MakeChannel();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  const Flat<Text> early = BuildText(builder, Pattern(1000, 1));
  const Flat<Text> early_and_long = BuildText(builder, Pattern(100'000, 2));
  Flat<Text> response;
  ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, early, &response), IsOk());
  EXPECT_TRUE(TextOf(response) == Pattern(1000, 1));
  EXPECT_EQ(channel->statistics().payload_bytes_copied, early.bytes().size());
  ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, early_and_long, &response), IsOk());
  EXPECT_TRUE(TextOf(response) == Pattern(100'000, 2));
  const uint64_t copied = channel->statistics().payload_bytes_copied;
  // The builder notices that there is one now.
  ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, Pattern(1000, 3)), &response),
              IsOk());
  EXPECT_EQ(channel->statistics().payload_bytes_copied, copied);
}

TEST_F(FlatBuffers, OfAnEarlierConnectionCanStillBeSent) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  std::vector<Flat<Text>> requests;
  for (const size_t size : {10, 1000, 100'000}) {
    requests.push_back(BuildText(builder, Pattern(size, size)));
  }
  StopServer();
  EXPECT_TRUE(WaitUntil([&] { return channel->statistics().disconnects == 1; }));
  StartServer();
  Flat<Text> response;
  for (const Flat<Text>& request : requests) {
    absl::Status status;
    EXPECT_TRUE(WaitUntil([&] {  // Attempts fail at once for a while.
      status = Call(&FlatTrial::Stub::Echo, *stub, request, &response);
      return status.code() != absl::StatusCode::kUnavailable;
    }));
    ASSERT_THAT(status, IsOk());
    EXPECT_TRUE(TextOf(response) == TextOf(request));
  }
  const uint64_t copied = channel->statistics().payload_bytes_copied;
  ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, Pattern(1000, 9)), &response),
              IsOk());
  EXPECT_EQ(channel->statistics().payload_bytes_copied, copied);
}

TEST_F(FlatBuffers, ThatFindNoMemoryEndTheirCallAndSayWhich) {
  StartServer();
  ChannelOptions options;
  options.endpoint.payload_bytes_max = 256 * 1024;
  auto channel = Connect(options);
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  Flat<Text> response;
  EXPECT_THAT(
      Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, Pattern(1 << 20, 1)), &response),
      Is(absl::StatusCode::kResourceExhausted, "the memory budget of the connection"));
  ASSERT_THAT(Call(&FlatTrial::Stub::Echo, *stub, BuildText(builder, "short"), &response), IsOk());
  EXPECT_EQ(TextOf(response), "short");
}

TEST_F(FlatBuffers, TravelWithAttachments) {
  StartServer();
  auto channel = Connect();
  auto stub = FlatTrial::NewStub(channel);
  FlatMessageBuilder builder(*channel);
  BufferPool pool;
  for (const size_t message_bytes : {5, 500, 10'000}) {
    for (const size_t attachment_bytes : {0, 5, 5000, 300'000}) {
      for (const uint64_t expected : {uint64_t{0}, uint64_t{1} << 20}) {
        ClientContext context;
        context.set_timeout(milliseconds(20'000));
        context.set_response_bytes_max(expected);
        Buffer attachment = Must(pool.Allocate(attachment_bytes));
        FillPattern(attachment.span(), attachment_bytes);
        context.AddAttachment(attachment);
        const std::string text = Pattern(message_bytes, message_bytes);
        Flat<Text> response;
        ASSERT_THAT(stub->Mirror(&context, BuildText(builder, text), &response), IsOk());
        ASSERT_TRUE(TextOf(response) == text);
        ASSERT_EQ(context.response_attachments().size(), 1u);
        const Buffer& back = context.response_attachments()[0].buffer;
        ASSERT_EQ(back.size(), attachment_bytes);
        EXPECT_EQ(PatternMismatch(back.span(), attachment_bytes), attachment_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace verbena
