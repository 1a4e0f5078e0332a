// SPDX-License-Identifier: Apache-2.0
//
// Tests of clients as users write them, with generated mocks.

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/codegen/corpus/fbs/mixed_flat_mock.verbena.h"
#include "tests/codegen/corpus/fbs/mixed_mock.verbena.h"
#include "tests/codegen/corpus/helper_names_mock.verbena.h"

namespace {

using testing::_;
using testing::Return;
using testing::StrictMock;

namespace proto = corpus::fbs::mixed_proto;
namespace flat = corpus::fbs::mixed;

// ---- What is tested: two clients, which know the interface only -----------------------------

std::string GreetTwice(proto::Greeter::StubInterface& stub) {
  proto::Request request;
  request.set_text("you");
  std::string texts;
  for (int i = 0; i < 2; ++i) {
    verbena::ClientContext context;
    proto::Reply reply;
    const absl::Status status = stub.SayHello(&context, request, &reply);
    texts += status.ok() ? reply.text() : status.ToString();
    texts += '\n';
  }
  return texts;
}

std::string Greet(flat::Greeter::StubInterface& stub) {
  verbena::FlatMessageBuilder builder;
  builder.Finish(flat::CreateRequestDirect(builder, "you"), flat::RequestIdentifier());
  verbena::ClientContext context;
  verbena::FlatMessage<flat::Reply> reply;
  const absl::Status status =
      stub.SayHello(&context, builder.ReleaseMessage<flat::Request>(), &reply);
  return status.ok() ? reply->text()->str() : status.ToString();
}

// ---- The tests ------------------------------------------------------------------------------

TEST(Mocks, BlockingCallsOfProtobuf) {
  StrictMock<proto::MockGreeterStub> stub;
  EXPECT_CALL(stub, SayHello(_, _, _))
      .WillOnce([](verbena::ClientContext*, const proto::Request& request, proto::Reply* reply) {
        reply->set_text("hello, " + request.text());
        return absl::OkStatus();
      })
      .WillOnce(Return(absl::UnavailableError("gone")));
  EXPECT_EQ(GreetTwice(stub), "hello, you\nUNAVAILABLE: gone\n");
}

TEST(Mocks, BlockingCallsOfFlatBuffers) {
  StrictMock<flat::MockGreeterStub> stub;
  EXPECT_CALL(stub, SayHello(_, _, _))
      .WillOnce([](verbena::ClientContext*, const verbena::FlatMessage<flat::Request>& request,
                   verbena::FlatMessage<flat::Reply>* reply) {
        verbena::FlatMessageBuilder builder;
        builder.Finish(
            flat::CreateReplyDirect(builder, ("hello, " + request->text()->str()).c_str()));
        *reply = builder.ReleaseMessage<flat::Reply>();
        return absl::OkStatus();
      });
  EXPECT_EQ(Greet(stub), "hello, you");
}

TEST(Mocks, CallsThatDoNotWait) {
  StrictMock<flat::MockGreeterAsync> async;
  StrictMock<flat::MockGreeterStub> stub;
  EXPECT_CALL(stub, async()).WillOnce(Return(&async));
  EXPECT_CALL(async, class_(_, _, _, _))
      .WillOnce([](verbena::ClientContext*, const verbena::FlatMessage<flat::Request>*,
                   verbena::FlatMessage<flat::Reply>*,
                   verbena::DoneCallback done) { done(absl::CancelledError("not now")); });
  absl::Status status;
  verbena::ClientContext context;
  const verbena::FlatMessage<flat::Request> request;
  verbena::FlatMessage<flat::Reply> reply;
  flat::Greeter::StubInterface& client = stub;
  client.async()->class_(&context, &request, &reply,
                         [&status](absl::Status result) { status = std::move(result); });
  EXPECT_EQ(status.message(), "not now");
}

// The mock's classes and methods give way as the service's do.
TEST(Mocks, NamesThatGaveWay) {
  StrictMock<proto::MockGreeterAsync> async;
  StrictMock<proto::MockGreeterStub> stub;
  EXPECT_CALL(stub, delete_(_, _, _)).WillOnce(Return(absl::OkStatus()));
  verbena::ClientContext context;
  proto::Reply reply;
  EXPECT_TRUE(stub.delete_(&context, proto::Request(), &reply).ok());
  StrictMock<corpus::helper_names::MockStubStub> helper;
  corpus::helper_names::Stub_::StubInterface* const interface = &helper;
  EXPECT_CALL(helper, async()).WillOnce(Return(nullptr));
  EXPECT_EQ(interface->async(), nullptr);
}

}  // namespace
