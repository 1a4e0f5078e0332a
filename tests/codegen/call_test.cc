// SPDX-License-Identifier: Apache-2.0
//
// Generated code at work: server and client in one process, every method of nasty services called
// both ways. Each handler answers with the method's own name and what it was sent, so that a call
// that lands in another method shows.

#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/codegen/corpus/helper_names.verbena.h"
#include "tests/codegen/corpus/keywords.verbena.h"
#include "tests/codegen/corpus/letter_case.verbena.h"
#include "tests/codegen/corpus/no_methods.verbena.h"
#include "tests/codegen/corpus/package_std.verbena.h"
#include "tests/codegen/corpus/proto2.verbena.h"
#include "tests/codegen/corpus/well_known.verbena.h"
#include "verbena/rpc/verbena.h"

namespace {

namespace keywords = corpus::keywords;
namespace helper_names = corpus::helper_names;
namespace letter_case = corpus::letter_case;

// ---- Handlers -------------------------------------------------------------------------------

std::string Text(const keywords::struct_& message) { return std::to_string(message.delete_()); }
std::string Text(const keywords::struct__new& message) { return std::to_string(message.base()); }
template <class Message>
std::string Text(const Message& message) {
  return message.value();
}

void SetText(const std::string& text, keywords::struct_* message) {
  message->set_delete_(static_cast<int>(text.size()));
}
void SetText(const std::string& text, keywords::struct__new* message) {
  message->set_target(static_cast<int>(text.size()));
}
template <class Message>
void SetText(const std::string& text, Message* message) {
  message->set_value(text);
}

template <class Request, class Response>
absl::Status Answer(std::string_view method, const Request* request, Response* response) {
  SetText(std::string(method) + " got " + Text(*request), response);
  return absl::OkStatus();
}

using Context = verbena::ServerContext;

class KeywordsService final : public keywords::class_::Service {
  using U = keywords::union_;
  absl::Status delete_(Context*, const keywords::struct__new* q, U* r) override {
    return Answer("delete", q, r);
  }
  absl::Status new_(Context*, const keywords::struct_* q, keywords::struct_* r) override {
    return Answer("new", q, r);
  }
  absl::Status operator_(Context*, const U* q, keywords::struct__new* r) override {
    return Answer("operator", q, r);
  }
  absl::Status assert_(Context*, const U* q, U* r) override { return Answer("assert", q, r); }
  absl::Status co_await_(Context*, const U* q, U* r) override { return Answer("co_await", q, r); }
  absl::Status NULL_(Context*, const U* q, U* r) override { return Answer("NULL", q, r); }
  absl::Status this_(Context*, const U* q, U* r) override { return Answer("this", q, r); }
  absl::Status template__(Context*, const U* q, U* r) override { return Answer("template", q, r); }
  absl::Status template_(Context*, const U* q, U* r) override { return Answer("template_", q, r); }
};

class HelperNamesService final : public helper_names::Service_::Service {
  using M = helper_names::Message;
  absl::Status Service_(Context*, const M* q, M* r) override { return Answer("Service", q, r); }
  absl::Status Stub_(Context*, const M* q, M* r) override { return Answer("Stub", q, r); }
  absl::Status NewStub(Context*, const M* q, M* r) override { return Answer("NewStub", q, r); }
  absl::Status StubInterface_(Context*, const M* q, M* r) override {
    return Answer("StubInterface", q, r);
  }
  absl::Status AsyncInterface_(Context*, const M* q, M* r) override {
    return Answer("AsyncInterface", q, r);
  }
  absl::Status async_(Context*, const M* q, M* r) override { return Answer("async", q, r); }
  absl::Status channel__(Context*, const M* q, M* r) override { return Answer("channel_", q, r); }
  absl::Status VerbenaMethods_(Context*, const M* q, M* r) override {
    return Answer("VerbenaMethods", q, r);
  }
  absl::Status AddVerbenaMethod_(Context*, const M* q, M* r) override {
    return Answer("AddVerbenaMethod", q, r);
  }
  absl::Status verbena_methods_(Context*, const M* q, M* r) override {
    return Answer("verbena_methods", q, r);
  }
};

class ChannelService final : public helper_names::Channel::Service {
  using M = helper_names::Message;
  absl::Status Channel(Context*, const M* q, M* r) override { return Answer("Channel", q, r); }
  absl::Status Message(Context*, const M* q, M* r) override { return Answer("Message", q, r); }
};

class LetterCaseService final : public letter_case::Echo::Service {
  using Upper = letter_case::Message;
  using Lower = letter_case::message;
  absl::Status sayhello(Context*, const Upper* q, Upper* r) override {
    return Answer("sayhello", q, r);
  }
  absl::Status SayHello(Context*, const Upper* q, Lower* r) override {
    return Answer("SayHello", q, r);
  }
  absl::Status SAYHELLO(Context*, const Lower* q, Upper* r) override {
    return Answer("SAYHELLO", q, r);
  }
};

class StdService final : public std::CorpusGreeter::Service {
  absl::Status SayHello(Context*, const std::CorpusMessage* q, std::CorpusMessage* r) override {
    return Answer("SayHello", q, r);
  }
};

class LegacyService final : public corpus::proto2::Legacy::Service {
  absl::Status Call(Context*, const corpus::proto2::Request* request,
                    corpus::proto2::Request_Part* response) override {
    response->set_stream(request->base() + "/" + std::to_string(request->target()) + "/" +
                         request->GetExtension(corpus::proto2::note));
    return absl::OkStatus();
  }
};

class ClockService final : public corpus::well_known::Clock::Service {
  absl::Status Now(Context*, const google::protobuf::Empty*,
                   google::protobuf::Timestamp* response) override {
    response->set_seconds(1234567890);
    return absl::OkStatus();
  }
  // Pack is not overridden.
};

// ---- The tests ------------------------------------------------------------------------------

class GeneratedCode : public testing::Test {
 protected:
  void SetUp() override {
    // Not the process id: in Bazel's sandbox every test has the same one, and all share the names.
    const std::string address =
        "shm:codegen-call-test-" + std::to_string(std::random_device{}());
    verbena::ServerBuilder builder;
    builder.AddListeningPort(address);
    for (verbena::Service* service :
         {static_cast<verbena::Service*>(&keywords_), static_cast<verbena::Service*>(&helpers_),
          static_cast<verbena::Service*>(&channel_service_),
          static_cast<verbena::Service*>(&letter_case_), static_cast<verbena::Service*>(&std_),
          static_cast<verbena::Service*>(&legacy_), static_cast<verbena::Service*>(&clock_),
          static_cast<verbena::Service*>(&idle_)}) {
      builder.RegisterService(service);
    }
    absl::StatusOr<std::unique_ptr<verbena::Server>> server = builder.BuildAndStart();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = verbena::CreateChannel(address);
  }

  // What `method` of `stub` answers to a request with the number or text 7; then the same through
  // the asynchronous interface, which must agree.
  template <class Stub, class Async, class Request, class Response>
  Response Call(Stub& stub,
                absl::Status (Stub::*method)(verbena::ClientContext*, const Request&, Response*),
                void (Async::*async_method)(verbena::ClientContext*, const Request*, Response*,
                                            verbena::DoneCallback)) {
    Request request;
    SetRequest(&request);
    Response blocking;
    verbena::ClientContext context;
    context.set_timeout(std::chrono::seconds(10));
    const absl::Status status = (stub.*method)(&context, request, &blocking);
    EXPECT_TRUE(status.ok()) << status;

    Response async;
    verbena::ClientContext async_context;
    async_context.set_timeout(std::chrono::seconds(10));
    std::promise<absl::Status> done;
    (stub.async()->*async_method)(&async_context, &request, &async,
                                  [&done](absl::Status result) { done.set_value(result); });
    const absl::Status async_status = done.get_future().get();
    EXPECT_TRUE(async_status.ok()) << async_status;
    EXPECT_EQ(async.SerializeAsString(), blocking.SerializeAsString());
    return blocking;
  }

  KeywordsService keywords_;
  HelperNamesService helpers_;
  ChannelService channel_service_;
  LetterCaseService letter_case_;
  StdService std_;
  LegacyService legacy_;
  ClockService clock_;
  corpus::no_methods::Idle::Service idle_;
  std::unique_ptr<verbena::Server> server_;
  std::shared_ptr<verbena::Channel> channel_;

 private:
  static void SetRequest(keywords::struct_* message) { message->set_delete_(7); }
  static void SetRequest(keywords::struct__new* message) { message->set_base(7); }
  template <class Message>
  static void SetRequest(Message* message) {
    message->set_value("7");
  }
};

TEST_F(GeneratedCode, CallsMethodsThatAreKeywords) {
  using S = keywords::class_::StubInterface;
  using A = keywords::class_::AsyncInterface;
  const std::unique_ptr<S> stub = keywords::class_::NewStub(channel_);
  EXPECT_EQ(Call(*stub, &S::delete_, &A::delete_).value(), "delete got 7");
  EXPECT_EQ(Call(*stub, &S::new_, &A::new_).delete_(), 9);            // "new got 7"
  EXPECT_EQ(Call(*stub, &S::operator_, &A::operator_).target(), 14);  // "operator got 7"
  EXPECT_EQ(Call(*stub, &S::assert_, &A::assert_).value(), "assert got 7");
  EXPECT_EQ(Call(*stub, &S::co_await_, &A::co_await_).value(), "co_await got 7");
  EXPECT_EQ(Call(*stub, &S::NULL_, &A::NULL_).value(), "NULL got 7");
  EXPECT_EQ(Call(*stub, &S::this_, &A::this_).value(), "this got 7");
  EXPECT_EQ(Call(*stub, &S::template__, &A::template__).value(), "template got 7");
  EXPECT_EQ(Call(*stub, &S::template_, &A::template_).value(), "template_ got 7");
}

TEST_F(GeneratedCode, CallsMethodsThatAreHelperNames) {
  using S = helper_names::Service_::StubInterface;
  using A = helper_names::Service_::AsyncInterface;
  const std::unique_ptr<S> stub = helper_names::Service_::NewStub(channel_);
  EXPECT_EQ(Call(*stub, &S::Service_, &A::Service_).value(), "Service got 7");
  EXPECT_EQ(Call(*stub, &S::Stub_, &A::Stub_).value(), "Stub got 7");
  EXPECT_EQ(Call(*stub, &S::NewStub, &A::NewStub).value(), "NewStub got 7");
  EXPECT_EQ(Call(*stub, &S::StubInterface_, &A::StubInterface_).value(), "StubInterface got 7");
  EXPECT_EQ(Call(*stub, &S::AsyncInterface_, &A::AsyncInterface_).value(), "AsyncInterface got 7");
  EXPECT_EQ(Call(*stub, &S::async_, &A::async_).value(), "async got 7");
  EXPECT_EQ(Call(*stub, &S::channel__, &A::channel__).value(), "channel_ got 7");
  EXPECT_EQ(Call(*stub, &S::VerbenaMethods_, &A::VerbenaMethods_).value(), "VerbenaMethods got 7");
  EXPECT_EQ(Call(*stub, &S::AddVerbenaMethod_, &A::AddVerbenaMethod_).value(),
            "AddVerbenaMethod got 7");
  EXPECT_EQ(Call(*stub, &S::verbena_methods_, &A::verbena_methods_).value(),
            "verbena_methods got 7");
}

TEST_F(GeneratedCode, CallsMethodsNamedAsTheirServiceAndMessage) {
  using S = helper_names::Channel::StubInterface;
  using A = helper_names::Channel::AsyncInterface;
  const std::unique_ptr<S> stub = helper_names::Channel::NewStub(channel_);
  EXPECT_EQ(Call(*stub, &S::Channel, &A::Channel).value(), "Channel got 7");
  EXPECT_EQ(Call(*stub, &S::Message, &A::Message).value(), "Message got 7");
}

TEST_F(GeneratedCode, CallsMethodsThatDifferInCaseOnly) {
  using S = letter_case::Echo::StubInterface;
  using A = letter_case::Echo::AsyncInterface;
  const std::unique_ptr<S> stub = letter_case::Echo::NewStub(channel_);
  EXPECT_EQ(Call(*stub, &S::sayhello, &A::sayhello).value(), "sayhello got 7");
  EXPECT_EQ(Call(*stub, &S::SayHello, &A::SayHello).value(), "SayHello got 7");
  EXPECT_EQ(Call(*stub, &S::SAYHELLO, &A::SAYHELLO).value(), "SAYHELLO got 7");
}

TEST_F(GeneratedCode, CallsAServiceInPackageStd) {
  using S = std::CorpusGreeter::StubInterface;
  using A = std::CorpusGreeter::AsyncInterface;
  const std::unique_ptr<S> stub = std::CorpusGreeter::NewStub(channel_);
  EXPECT_EQ(Call(*stub, &S::SayHello, &A::SayHello).value(), "SayHello got 7");
}

TEST_F(GeneratedCode, CarriesProto2DefaultsGroupsAndExtensions) {
  corpus::proto2::Request request;
  request.set_base("b");
  request.SetExtension(corpus::proto2::note, "n");
  corpus::proto2::Request_Part response;
  verbena::ClientContext context;
  const absl::Status status =
      corpus::proto2::Legacy::NewStub(channel_)->Call(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(response.stream(), "b/7/n");
}

TEST_F(GeneratedCode, CarriesWellKnownTypes) {
  google::protobuf::Timestamp response;
  verbena::ClientContext context;
  const absl::Status status = corpus::well_known::Clock::NewStub(channel_)->Now(
      &context, google::protobuf::Empty(), &response);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(response.seconds(), 1234567890);
}

TEST_F(GeneratedCode, MethodThatIsNotOverriddenIsUnimplementedAndNamed) {
  google::protobuf::Any response;
  verbena::ClientContext context;
  const absl::Status status = corpus::well_known::Clock::NewStub(channel_)->Pack(
      &context, google::protobuf::StringValue(), &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "corpus.well_known.Clock/Pack is not implemented");
}

TEST(GeneratedNames, ServiceFullNameIsTheOneOfTheSchema) {
  EXPECT_EQ(keywords::class_::service_full_name, "corpus.keywords.class");
  EXPECT_EQ(helper_names::service_full_name_::service_full_name,
            "corpus.helper_names.service_full_name");
}

}  // namespace
