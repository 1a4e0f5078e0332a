// SPDX-License-Identifier: Apache-2.0
//
// Every limit refuses with RESOURCE_EXHAUSTED and its own name or number.

#include <string>

#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

class Limits : public TrialTest {
 protected:
  absl::Status Produce(trial::Trial::Stub& stub, uint32_t bytes) {
    trial::ProduceRequest request;
    request.set_bytes(bytes);
    ClientContext context;
    context.set_timeout(milliseconds(20'000));
    trial::Text response;
    absl::Status status = stub.Produce(&context, request, &response);
    if (status.ok()) {
      EXPECT_EQ(response.text().size(), bytes);
    }
    return status;
  }
};

TEST_F(Limits, TheLargestSlotCarriesTheLargestMessage) {
  const auto largest = [](EndpointOptions& endpoint) { endpoint.slot_bytes = 65536; };
  StartServer([&](ServerOptions& options) { largest(options.endpoint); });
  ChannelOptions options;
  largest(options.endpoint);
  auto stub = MakeStub(options);
  EXPECT_THAT(Produce(*stub, 65516), IsOk());
  const std::string text(65508, 'x');
  EXPECT_EQ(Echo(*stub, text).text, text);
}

TEST_F(Limits, OneCallMoreThanMayBeOutstandingIsRefused) {
  StartServerOnExecutor(4);
  ChannelOptions options;
  options.outstanding_calls_max = 2;
  auto stub = MakeStub(options);
  AsyncCall<trial::WorkRequest> first;
  AsyncCall<trial::WorkRequest> second;
  AsyncCall<trial::WorkRequest> third;
  for (auto* call : {&first, &second, &third}) {
    call->request.set_milliseconds(15'000);
    stub->async()->Work(&call->context, &call->request, &call->response, call->Done());
  }
  EXPECT_THAT(third.Await(), Is(absl::StatusCode::kResourceExhausted,
                                "2 calls are outstanding, which is "
                                "ChannelOptions::outstanding_calls_max"));
  EXPECT_THAT(Echo(*stub, "fourth").status,
              Is(absl::StatusCode::kResourceExhausted, "outstanding_calls_max"));
  first.context.TryCancel();
  EXPECT_EQ(first.Await().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(Echo(*stub, "fifth").status, IsOk());
  second.context.TryCancel();
  EXPECT_EQ(second.Await().code(), absl::StatusCode::kCancelled);
}

TEST_F(Limits, AnExecutorThatRefusesIsResourceExhausted) {
  executor_ = std::make_unique<ThreadExecutor>(1, /*queue_max=*/0);
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status,
              Is(absl::StatusCode::kResourceExhausted, "the server's executor is full"));
  // The answer is out a moment before it is counted.
  EXPECT_TRUE(WaitUntil([&] { return server_->statistics().calls_in_flight == 0; }));
  EXPECT_THAT(Echo(*stub, "x").status,
              Is(absl::StatusCode::kResourceExhausted, "the server's executor is full"));
}

TEST_F(Limits, OneConnectionMoreThanTheServerTakesIsRefusedUntilOneEnds) {
  StartServer([](ServerOptions& options) { options.connections_max = 1; });
  auto first = trial::Trial::NewStub(CreateChannel(target_));
  EXPECT_THAT(Echo(*first, "x").status, IsOk());
  ChannelOptions options;
  options.reconnect_backoff_min = options.reconnect_backoff_max = milliseconds(1);
  auto second = MakeStub(options);
  EXPECT_THAT(Echo(*second, "x").status,
              Is(absl::StatusCode::kResourceExhausted, "all the connections it takes, 1"));
  EXPECT_EQ(server_->statistics().connections_refused, 1u);
  first.reset();
  ASSERT_TRUE(WaitUntil([&] { return server_->statistics().connections == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return Echo(*second, "x").status.ok(); }));
}

}  // namespace
}  // namespace verbena
