// SPDX-License-Identifier: Apache-2.0
//
// Generated code of .fbs files against the runtime: names that gave way, identifiers, alignments.

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/codegen/corpus/fbs/formats.verbena.h"
#include "tests/codegen/corpus/fbs/keywords.verbena.h"
#include "tests/codegen/corpus/fbs/mixed_flat.verbena.h"
#include "tests/codegen/corpus/fbs/namespaces.verbena.h"
#include "verbena/rpc/flat_message.h"
#include "verbena/rpc/verbena.h"

namespace {

namespace formats = corpus::fbs::formats;
namespace keywords = corpus::fbs::keywords;
namespace mixed = corpus::fbs::mixed;
namespace outer = corpus::fbs::outer;

using Context = verbena::ServerContext;
template <class Table>
using Message = verbena::FlatMessage<Table>;

// ---- The services -----------------------------------------------------------------------------

class GreeterService final : public mixed::Greeter::Service {
  absl::Status SayHello(Context* context, const Message<mixed::Request>* request,
                        Message<mixed::Reply>* reply) override {
    verbena::FlatMessageBuilder builder(*context);
    builder.Finish(
        mixed::CreateReplyDirect(builder, ("hello, " + (*request)->text()->str()).c_str()));
    *reply = builder.ReleaseMessage<mixed::Reply>();
    return absl::OkStatus();
  }
  // class_ is not overridden.
};

class KeywordsService final : public keywords::namespace_::Service {
  absl::Status delete_(Context* context, const Message<keywords::class_>* request,
                       Message<keywords::New>* reply) override {
    verbena::FlatMessageBuilder builder(*context);
    builder.Finish(keywords::CreateNew(builder, (*request)->int_() + 1));
    *reply = builder.ReleaseMessage<keywords::New>();
    return absl::OkStatus();
  }
};

class FormatsService final : public formats::Formats::Service {
  // Says how its request is aligned.
  absl::Status Deep(Context* context, const Message<corpus::fbs::imported::deep::Deep>* request,
                    Message<formats::Recursive>* reply) override {
    const auto address = reinterpret_cast<uintptr_t>((*request)->wide());
    if (address % 32 != 0) return absl::InternalError("not aligned");
    verbena::FlatMessageBuilder builder(*context);
    const auto deep = corpus::fbs::imported::deep::CreateDeep(builder, (*request)->wide());
    builder.Finish(formats::CreateRecursive(builder, 0, 0, deep));
    *reply = builder.ReleaseMessage<formats::Recursive>();
    return absl::OkStatus();
  }
};

class InnerGreeterService final : public outer::inner::Greeter::Service {
  absl::Status SayHello(Context* context, const Message<outer::inner::Request>* request,
                        Message<outer::inner::Other>* reply) override {
    verbena::FlatMessageBuilder builder(*context);
    const auto text = outer::inner::CreateRequestDirect(builder, (*request)->text()->c_str());
    builder.Finish(outer::inner::CreateOther(builder, text));
    *reply = builder.ReleaseMessage<outer::inner::Other>();
    return absl::OkStatus();
  }
};

// ---- The tests --------------------------------------------------------------------------------

class GeneratedFlatCode : public testing::Test {
 protected:
  void SetUp() override {
    const std::string address =
        "shm:codegen-flat-call-test-" + std::to_string(std::random_device{}());
    verbena::ServerBuilder builder;
    builder.AddListeningPort(address);
    builder.RegisterService(&greeter_);
    builder.RegisterService(&keywords_);
    builder.RegisterService(&formats_);
    builder.RegisterService(&inner_);
    absl::StatusOr<std::unique_ptr<verbena::Server>> server = builder.BuildAndStart();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = verbena::CreateChannel(address);
    context_.set_timeout(std::chrono::seconds(10));
  }

  GreeterService greeter_;
  KeywordsService keywords_;
  FormatsService formats_;
  InnerGreeterService inner_;
  std::unique_ptr<verbena::Server> server_;
  std::shared_ptr<verbena::Channel> channel_;
  verbena::ClientContext context_;
};

TEST_F(GeneratedFlatCode, BlockingCall) {
  verbena::FlatMessageBuilder builder(*channel_);
  builder.Finish(mixed::CreateRequestDirect(builder, "you"), mixed::RequestIdentifier());
  Message<mixed::Reply> reply;
  const absl::Status status = mixed::Greeter::NewStub(channel_)->SayHello(
      &context_, builder.ReleaseMessage<mixed::Request>(), &reply);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply->text()->str(), "hello, you");
}

TEST_F(GeneratedFlatCode, CallThatDoesNotWait) {
  verbena::FlatMessageBuilder builder(*channel_);
  builder.Finish(keywords::Createclass_(builder, 41));
  const Message<keywords::class_> request = builder.ReleaseMessage<keywords::class_>();
  Message<keywords::New> reply;
  const std::unique_ptr<keywords::namespace_::Stub> stub = keywords::namespace_::NewStub(channel_);
  std::promise<absl::Status> done;
  stub->async()->delete_(&context_, &request, &reply,
                         [&done](absl::Status status) { done.set_value(std::move(status)); });
  const absl::Status status = done.get_future().get();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply->a(), 42);
}

TEST_F(GeneratedFlatCode, MethodThatIsNotOverridden) {
  verbena::FlatMessageBuilder builder(*channel_);
  builder.Finish(mixed::CreateRequestDirect(builder, "you"), mixed::RequestIdentifier());
  Message<mixed::Reply> reply;
  const absl::Status status = mixed::Greeter::NewStub(channel_)->class_(
      &context_, builder.ReleaseMessage<mixed::Request>(), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "corpus.fbs.mixed.Greeter/class is not implemented");
}

TEST_F(GeneratedFlatCode, IdentifierIsPartOfTheFormat) {
  verbena::FlatMessageBuilder builder(*channel_);
  builder.Finish(mixed::CreateRequestDirect(builder, "you"));  // Without the identifier.
  Message<mixed::Reply> reply;
  const absl::Status status = mixed::Greeter::NewStub(channel_)->SayHello(
      &context_, builder.ReleaseMessage<mixed::Request>(), &reply);
  EXPECT_FALSE(status.ok());
}

TEST_F(GeneratedFlatCode, AlignmentIsPartOfTheFormat) {
  for (int i = 0; i < 5; ++i) {  // Wherever it lands.
    verbena::FlatMessageBuilder builder(*channel_);
    const float values[8] = {0, 0, 0, 0, 0, 0, 0, 2.5F};
    const corpus::fbs::imported::deep::Wide wide(flatbuffers::make_span(values));
    builder.Finish(corpus::fbs::imported::deep::CreateDeep(builder, &wide),
                   corpus::fbs::imported::deep::DeepIdentifier());
    Message<formats::Recursive> reply;
    verbena::ClientContext context;
    context.set_timeout(std::chrono::seconds(10));
    const absl::Status status = formats::Formats::NewStub(channel_)->Deep(
        &context, builder.ReleaseMessage<corpus::fbs::imported::deep::Deep>(), &reply);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(reply->deep()->wide()) % 32, 0u);
    EXPECT_EQ(reply->deep()->wide()->a()->Get(7), 2.5F);
  }
}

TEST_F(GeneratedFlatCode, ServicesOfOneNameInTwoNamespaces) {
  verbena::FlatMessageBuilder builder(*channel_);
  builder.Finish(outer::inner::CreateRequestDirect(builder, "text"));
  Message<outer::inner::Other> reply;
  absl::Status status = outer::inner::Greeter::NewStub(channel_)->SayHello(
      &context_, builder.ReleaseMessage<outer::inner::Request>(), &reply);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply->request()->text()->str(), "text");

  // The other one is not registered.
  builder.Clear();
  builder.Finish(outer::CreateRequest(builder, 1));
  Message<outer::Request> other_reply;
  verbena::ClientContext context;
  context.set_timeout(std::chrono::seconds(10));
  status = outer::Greeter::NewStub(channel_)->Own(
      &context, builder.ReleaseMessage<outer::Request>(), &other_reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
