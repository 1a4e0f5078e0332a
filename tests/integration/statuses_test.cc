// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a call or a server can be refused, with words that say what to do.

#include <string>

#include "absl/strings/str_cat.h"
#include "verbena/tests/integration/trial_fixture.h"

namespace verbena {
namespace {

class Statuses : public TrialTest {
 protected:
  absl::Status Throw(trial::Trial::Stub& stub, const std::string& text) {
    ClientContext context;
    context.set_timeout(milliseconds(20'000));
    trial::Text response;
    return stub.Throw(&context, MakeText(text), &response);
  }
  absl::Status Start(const std::string& target, const Change& change = [](ServerOptions&) {}) {
    ServerBuilder builder;
    builder.AddListeningPort(target).RegisterService(&service_);
    change(builder.options());
    return builder.BuildAndStart().status();
  }
};

TEST_F(Statuses, EachCodeComesWithItsMessage) {
  StartServer();
  auto stub = MakeStub();
  for (uint32_t code = 1; code <= 16; ++code) {
    trial::EndRequest request;
    request.set_code(code);
    request.set_message(absl::StrCat("the message of ", code));
    ClientContext context;
    trial::Text response;
    EXPECT_EQ(stub->End(&context, request, &response),
              absl::Status(static_cast<absl::StatusCode>(code), request.message()));
  }
}

TEST_F(Statuses, AStatusWithoutAMessageHasNone) {
  StartServer();
  auto stub = MakeStub();
  trial::EndRequest request;
  request.set_code(5);
  ClientContext context;
  trial::Text response;
  EXPECT_EQ(stub->End(&context, request, &response), absl::NotFoundError(""));
}

TEST_F(Statuses, AHandlerThatThrowsEndsUnknownWithWhatItThrew) {
  StartServer();
  auto stub = MakeStub();
  EXPECT_THAT(Throw(*stub, "out of cheese"),
              Is(absl::StatusCode::kUnknown,
                 "the handler of trial.Trial/Throw threw: out of cheese"));
  EXPECT_THAT(Throw(*stub, ""), Is(absl::StatusCode::kUnknown, "no std::exception"));
  EXPECT_THAT(Echo(*stub, "still there").status, IsOk());
}

TEST_F(Statuses, AHandlerThatThrowsOnTheExecutorEndsUnknown) {
  StartServerOnExecutor(1);
  auto stub = MakeStub();
  EXPECT_THAT(Throw(*stub, "out of cheese"), Is(absl::StatusCode::kUnknown, "out of cheese"));
  EXPECT_THAT(Echo(*stub, "still there").status, IsOk());
}

TEST_F(Statuses, AMethodThatIsNotOverriddenIsUnimplemented) {
  StartServer();
  auto stub = MakeStub();
  ClientContext context;
  trial::Text response;
  EXPECT_EQ(stub->Forgotten(&context, MakeText("x"), &response).code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(Statuses, AServiceThatIsNotRegisteredIsUnimplemented) {
  StartServer();
  auto stub = trial::Absent::NewStub(MakeChannel());
  ClientContext context;
  trial::Text response;
  EXPECT_THAT(stub->Echo(&context, MakeText("x"), &response),
              Is(absl::StatusCode::kUnimplemented, "is the service registered"));
}

// ---- Connecting ----

TEST_F(Statuses, NoServerAtTheAddressIsUnavailableAndNamesIt) {
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status,
              Is(absl::StatusCode::kUnavailable, "no connection to " + target_));
  AsyncCall<trial::Text> call;
  stub->async()->Echo(&call.context, &call.request, &call.response, call.Done());
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Statuses, AMalformedAddressIsTheStatusOfEveryCall) {
  auto channel = CreateChannel("smh:typo");
  auto stub = trial::Trial::NewStub(channel);
  EXPECT_THAT(Echo(*stub, "x").status,
              Is(absl::StatusCode::kInvalidArgument, "\"smh:typo\" is not a server address"));
  AsyncCall<trial::Text> call;
  stub->async()->Echo(&call.context, &call.request, &call.response, call.Done());
  EXPECT_EQ(call.Await().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(channel->WaitForConnected(milliseconds(10)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(Statuses, AnAddressThatNoDeviceServesIsUnavailableAndSaysWhatToDo) {
  auto stub = trial::Trial::NewStub(CreateChannel("tcp:node:7471"));
  EXPECT_THAT(Echo(*stub, "x").status,
              Is(absl::StatusCode::kUnavailable, "no device serves tcp:node:7471"));
  EXPECT_THAT(Start("tcp:node:7471"),
              Is(absl::StatusCode::kUnavailable, "no device serves tcp:node:7471"));
}

TEST_F(Statuses, BadOptionsOfAChannelAreTheStatusOfEveryCall) {
  ChannelOptions options;
  options.endpoint.ring_depth = 100;
  auto ring = trial::Trial::NewStub(CreateChannel(target_, options));
  EXPECT_THAT(Echo(*ring, "x").status,
              Is(absl::StatusCode::kInvalidArgument, "ring_depth is 100"));
  for (uint32_t max : {0u, 4097u}) {
    ChannelOptions calls;
    calls.outstanding_calls_max = max;
    auto stub = trial::Trial::NewStub(CreateChannel(target_, calls));
    EXPECT_THAT(Echo(*stub, "x").status,
                Is(absl::StatusCode::kInvalidArgument, "outstanding_calls_max"));
  }
}

// ---- Starting a server ----

TEST_F(Statuses, AnAddressInUseIsRefusedAndTheFirstServerGoesOn) {
  StartServer();
  EXPECT_EQ(Start(target_).code(), absl::StatusCode::kAlreadyExists);
  auto stub = MakeStub();
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
}

TEST_F(Statuses, AnAddressIsFreeAgainAfterItsServer) {
  StartServer();
  StopServer();
  StartServer();
}

TEST_F(Statuses, OneServerMayListenAtTwoAddresses) {
  const std::string second = FreshTarget();
  StartServer([&](ServerOptions& options) { options.addresses.push_back(second); });
  EXPECT_EQ(server_->addresses().size(), 2u);
  auto stub = MakeStub();
  auto other = trial::Trial::NewStub(CreateChannel(second));
  EXPECT_THAT(Echo(*stub, "x").status, IsOk());
  EXPECT_THAT(Echo(*other, "x").status, IsOk());
}

TEST_F(Statuses, AServerThatCantHaveItsSecondAddressHasNeither) {
  const std::string first = FreshTarget();
  StartServer();
  EXPECT_EQ(Start(first, [&](ServerOptions& options) { options.addresses.push_back(target_); })
                .code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Start(first), IsOk());
}

TEST_F(Statuses, AServerSaysWhatIsWrongWithItsOptions) {
  EXPECT_THAT(Start("shm:"), Is(absl::StatusCode::kInvalidArgument, "the name is empty"));
  EXPECT_THAT(Start(target_, [](ServerOptions& options) { options.addresses.clear(); }),
              Is(absl::StatusCode::kInvalidArgument, "AddListeningPort"));
  EXPECT_THAT(Start(target_, [](ServerOptions& options) { options.services.clear(); }),
              Is(absl::StatusCode::kInvalidArgument, "RegisterService"));
  EXPECT_THAT(Start(target_, [](ServerOptions& options) { options.poller_count = 0; }),
              Is(absl::StatusCode::kInvalidArgument, "poller_count is 0"));
  EXPECT_THAT(Start(target_, [](ServerOptions& options) { options.connections_max = 0; }),
              Is(absl::StatusCode::kInvalidArgument, "connections_max is 0"));
  EXPECT_THAT(Start(target_, [](ServerOptions& options) { options.endpoint.slot_bytes = 1; }),
              Is(absl::StatusCode::kInvalidArgument, "slot_bytes is 1"));
  EXPECT_THAT(Start(target_,
                    [&](ServerOptions& options) { options.services.push_back(&service_); }),
              Is(absl::StatusCode::kAlreadyExists, "register each service once"));
}

}  // namespace
}  // namespace verbena
