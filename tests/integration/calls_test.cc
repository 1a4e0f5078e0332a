// SPDX-License-Identifier: Apache-2.0
//
// Calls one at a time, blocking and with a callback, and what a callback may do.

#include <string>

#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

class Calls : public TrialTest {};

TEST_F(Calls, ABlockingCallReturnsTheResponse) {
  StartServer();
  auto stub = MakeStub();
  const EchoResult result = Echo(*stub, "hello");
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.text, "hello");
}

TEST_F(Calls, ACallWithoutADeadlineReturnsTheResponse) {
  StartServer();
  auto stub = MakeStub();
  ClientContext context;
  trial::Text response;
  EXPECT_THAT(stub->Echo(&context, MakeText("hello"), &response), IsOk());
  EXPECT_EQ(response.text(), "hello");
}

TEST_F(Calls, AnEmptyMessageIsAMessage) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "").status, IsOk());
}

TEST_F(Calls, TheResponseReplacesWhatWasInTheMessage) {
  StartServer();
  auto stub = MakeStub();
  ClientContext context;
  trial::Text response = MakeText("left over");
  EXPECT_THAT(stub->Echo(&context, MakeText(""), &response), IsOk());
  EXPECT_EQ(response.text(), "");
}

TEST_F(Calls, NothingOfOneCallIsLeftInTheNext) {
  StartServer();
  auto stub = MakeStub();
  trial::ProduceRequest request;
  request.set_bytes(1000);
  ClientContext context;
  trial::Text response;
  EXPECT_THAT(stub->Produce(&context, request, &response), IsOk());
  EXPECT_EQ(response.text().size(), 1000u);
  // The handler of Work sets nothing when it is given up; Produce of 0 sets an empty text.
  request.set_bytes(0);
  ClientContext second;
  EXPECT_THAT(stub->Produce(&second, request, &response), IsOk());
  EXPECT_EQ(response.text().size(), 0u);
}

TEST_F(Calls, EverySizeThatFitsASlotArrivesWhole) {
  StartServer();
  auto stub = MakeStub();
  for (size_t size = 0; size <= 4000; size += size < 300 ? 1 : 37) {
    const std::string text(size, static_cast<char>('a' + size % 26));
    const EchoResult result = Echo(*stub, text);
    ASSERT_THAT(result.status, IsOk()) << size;
    ASSERT_EQ(result.text, text);
  }
}

TEST_F(Calls, ACallbackGetsTheResponse) {
  StartServer();
  auto stub = MakeStub();
  AsyncCall<trial::Text> call;
  call.request = MakeText("hello");
  stub->async()->Echo(&call.context, &call.request, &call.response, call.Done());
  EXPECT_THAT(call.Await(), IsOk());
  EXPECT_EQ(call.response.text(), "hello");
}

TEST_F(Calls, ThousandsOfBlockingCallsGoThroughOneChannel) {
  StartServer();
  auto channel = MakeChannel();
  auto stub = trial::Trial::NewStub(channel);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(Echo(*stub, std::to_string(i)).text, std::to_string(i));
  EXPECT_EQ(channel->statistics().calls_started, 5000u);
  EXPECT_EQ(channel->statistics().calls_ok, 5000u);
  EXPECT_EQ(channel->statistics().connects, 1u);
  EXPECT_EQ(server_->statistics().calls_started, 5000u);
  EXPECT_EQ(server_->statistics().connections, 1u);
}

TEST_F(Calls, ACallbackMayStartTheNextCall) {
  StartServer();
  auto stub = MakeStub();
  AsyncCall<trial::Text> first;
  AsyncCall<trial::Text> second;
  second.request = MakeText("second");
  stub->async()->Echo(&first.context, &first.request, &first.response,
                      [&, done = first.Done()](absl::Status status) {
                        stub->async()->Echo(&second.context, &second.request, &second.response,
                                            second.Done());
                        EXPECT_FALSE(second.done()) << "it ran before the call returned";
                        done(status);
                      });
  EXPECT_THAT(first.Await(), IsOk());
  EXPECT_THAT(second.Await(), IsOk());
  EXPECT_EQ(second.response.text(), "second");
}

// Even one that can't be sent at all ends after StartUnary has returned.
TEST_F(Calls, ACallbackNeverRunsInsideTheCallThatStartedIt) {
  StartServer();
  ChannelOptions options;
  options.endpoint.payload_bytes_max = 1;
  auto stub = MakeStub(options);
  AsyncCall<trial::Text> first;
  AsyncCall<trial::Text> too_long;
  AsyncCall<trial::Text> cancelled;
  too_long.request = MakeText(std::string(10'000, 'x'));
  cancelled.context.TryCancel();
  stub->async()->Echo(&first.context, &first.request, &first.response,
                      [&, done = first.Done()](absl::Status status) {
                        stub->async()->Echo(&too_long.context, &too_long.request,
                                            &too_long.response, too_long.Done());
                        EXPECT_FALSE(too_long.done()) << "it ran before the call returned";
                        stub->async()->Echo(&cancelled.context, &cancelled.request,
                                            &cancelled.response, cancelled.Done());
                        EXPECT_FALSE(cancelled.done()) << "it ran before the call returned";
                        done(status);
                      });
  EXPECT_THAT(first.Await(), IsOk());
  EXPECT_EQ(too_long.Await().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cancelled.Await().code(), absl::StatusCode::kCancelled);
}

TEST_F(Calls, ABlockingCallInsideACallbackIsRefused) {
  StartServer();
  auto stub = MakeStub();
  AsyncCall<trial::Text> call;
  absl::Status inner;
  stub->async()->Echo(&call.context, &call.request, &call.response,
                      [&, done = call.Done()](absl::Status status) {
                        inner = Echo(*stub, "inner").status;
                        done(status);
                      });
  EXPECT_THAT(call.Await(), IsOk());
  EXPECT_THAT(inner, Is(absl::StatusCode::kFailedPrecondition, "would wait for itself"));
}

TEST_F(Calls, ABlockingCallOnAnotherChannelInsideACallbackIsFineAndChangesNothing) {
  StartServer();
  auto stub = MakeStub();
  auto other = MakeStub();
  AsyncCall<trial::Text> call;
  absl::Status on_other;
  absl::Status on_own;
  stub->async()->Echo(&call.context, &call.request, &call.response,
                      [&, done = call.Done()](absl::Status status) {
                        on_other = Echo(*other, "other").status;
                        on_own = Echo(*stub, "own", milliseconds(2000)).status;
                        done(status);
                      });
  EXPECT_THAT(call.Await(), IsOk());
  EXPECT_THAT(on_other, IsOk());
  EXPECT_THAT(on_own, Is(absl::StatusCode::kFailedPrecondition, "would wait for itself"));
}

TEST_F(Calls, WaitForConnectedConnects) {
  StartServer();
  auto channel = MakeChannel();
  EXPECT_THAT(channel->WaitForConnected(milliseconds(10'000)), IsOk());
  EXPECT_THAT(channel->WaitForConnected(milliseconds(10'000)), IsOk());
  EXPECT_EQ(channel->statistics().connects, 1u);
  EXPECT_EQ(channel->target(), target_);
}

TEST_F(Calls, ACallOnAChannelThatWasIdleForLongIsAnswered) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "before").status, IsOk());
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(Echo(*stub, "after").text, "after");
}

}  // namespace
}  // namespace verbena
