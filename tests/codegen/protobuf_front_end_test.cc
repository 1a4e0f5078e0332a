// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/protobuf_front_end.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "google/protobuf/compiler/importer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"

namespace verbena::codegen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Files in memory, and their descriptors as protoc makes them, with line numbers.
class Files : public google::protobuf::compiler::SourceTree,
              public google::protobuf::compiler::MultiFileErrorCollector {
 public:
  explicit Files(std::map<std::string, std::string> texts) : texts_(std::move(texts)) {}

  absl::StatusOr<ServiceFile> Read(const std::string& path,
                                   const ProtobufFrontEndOptions& options = {}) {
    const google::protobuf::FileDescriptor* file = importer_.Import(path);
    if (file == nullptr) return absl::InternalError(errors_);
    return ReadProtobufFile(*file, options);
  }

  google::protobuf::io::ZeroCopyInputStream* Open(const std::string& path) override {
    const auto text = texts_.find(path);
    if (text == texts_.end()) return nullptr;
    return new google::protobuf::io::ArrayInputStream(text->second.data(),
                                                      static_cast<int>(text->second.size()));
  }

  void AddError(const std::string& path, int line, int, const std::string& message) override {
    errors_ += path + ":" + std::to_string(line) + ": " + message + "\n";
  }

 private:
  std::map<std::string, std::string> texts_;
  std::string errors_;
  google::protobuf::compiler::Importer importer_{this, this};
};

// The only file, called "a/b.proto".
absl::StatusOr<ServiceFile> ReadText(const std::string& text) {
  Files files(std::map<std::string, std::string>{{"a/b.proto", text}});
  return files.Read("a/b.proto");
}

// The message of the error that `text` leads to as "a/b.proto".
std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<ServiceFile> file = ReadText(text);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

TEST(ProtobufFrontEnd, ReadsAService) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "syntax = 'proto3';\n"
      "package p.q;\n"
      "// Of one.\n"
      "service Greeter {\n"
      "  // Says it.\n"
      "  rpc SayHello(In.Nested) returns (Out);\n"
      "}\n"
      "message In { message Nested {} }\n"
      "message Out {}\n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->source_path, "a/b.proto");
  EXPECT_EQ(file->header_path, "a/b.verbena.h");
  EXPECT_EQ(file->cpp_namespace, "p::q");
  EXPECT_THAT(file->message_headers, ElementsAre("a/b.pb.h"));
  ASSERT_EQ(file->services.size(), 1u);
  const ServiceModel& service = file->services[0];
  EXPECT_EQ(service.full_name, "p.q.Greeter");
  EXPECT_EQ(service.cpp_name, "Greeter");
  EXPECT_EQ(service.comment, " Of one.\n");
  ASSERT_EQ(service.methods.size(), 1u);
  const MethodModel& method = service.methods[0];
  EXPECT_EQ(method.full_name, "p.q.Greeter/SayHello");
  EXPECT_EQ(method.cpp_name, "SayHello");
  EXPECT_EQ(method.request_type, "::p::q::In_Nested");
  EXPECT_EQ(method.response_type, "::p::q::Out");
  EXPECT_EQ(method.comment, " Says it.\n");
  EXPECT_EQ(method.streaming, StreamingKind::kUnary);
  EXPECT_EQ(method.line, 6);
  EXPECT_EQ(method.column, 3);
}

TEST(ProtobufFrontEnd, NamesWithoutAPackage) {
  const absl::StatusOr<ServiceFile> file =
      ReadText("syntax = 'proto3'; message M {} service class { rpc delete(M) returns (M); }");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->cpp_namespace, "");
  EXPECT_EQ(file->services[0].full_name, "class");
  EXPECT_EQ(file->services[0].cpp_name, "class_");
  EXPECT_EQ(file->services[0].methods[0].full_name, "class/delete");
  EXPECT_EQ(file->services[0].methods[0].cpp_name, "delete_");
  EXPECT_EQ(file->services[0].methods[0].request_type, "::M");
}

TEST(ProtobufFrontEnd, TellsTheFourStreamingKindsApart) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "syntax = 'proto3'; message M {} service S {"
      "  rpc A(M) returns (M); rpc B(stream M) returns (M);"
      "  rpc C(M) returns (stream M); rpc D(stream M) returns (stream M); }");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<MethodModel>& methods = file->services[0].methods;
  EXPECT_EQ(methods[0].streaming, StreamingKind::kUnary);
  EXPECT_EQ(methods[1].streaming, StreamingKind::kClientStreaming);
  EXPECT_EQ(methods[2].streaming, StreamingKind::kServerStreaming);
  EXPECT_EQ(methods[3].streaming, StreamingKind::kBidirectional);
}

TEST(ProtobufFrontEnd, IncludesTheHeaderOfEachTypeWithThePrefix) {
  Files files({{"google/protobuf/empty.proto",
                "syntax = 'proto3'; package google.protobuf; message Empty {}"},
               {"b/base.proto", "syntax = 'proto3'; package b; message Base {}"},
               {"c/public.proto", "syntax = 'proto3'; import public 'b/base.proto';"},
               {"a/x-y.v1.proto",
                "syntax = 'proto3'; package a; import 'c/public.proto';"
                "import 'google/protobuf/empty.proto';"
                "service S { rpc F(b.Base) returns (google.protobuf.Empty); }"}});
  const absl::StatusOr<ServiceFile> file = files.Read("a/x-y.v1.proto", {.include_prefix = "gen"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->header_path, "gen/a/x-y.v1.verbena.h");
  EXPECT_THAT(file->message_headers,
              ElementsAre("gen/a/x-y.v1.pb.h", "gen/b/base.pb.h", "google/protobuf/empty.pb.h"));
}

TEST(ProtobufFrontEnd, ServiceAvoidsTypesOfAnImportedFileOfItsPackage) {
  Files files({{"one.proto", "syntax = 'proto3'; package p; message A { message B {} }"},
               {"other.proto", "syntax = 'proto3'; package q; message C { message D {} }"},
               {"x.proto",
                "syntax = 'proto3'; package p; import 'one.proto'; import 'other.proto';"
                "service A_B {} service C_D {}"}});
  const absl::StatusOr<ServiceFile> file = files.Read("x.proto");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->services[0].cpp_name, "A_B_");
  EXPECT_EQ(file->services[1].cpp_name, "C_D");  // ::q::C_D is elsewhere.
}

TEST(ProtobufFrontEnd, RefusesAPackageThatProtocCannotCompile) {
  EXPECT_THAT(ErrorOf("syntax = 'proto3';\n\n  package p.class;\n"),
              HasSubstr("a/b.proto:3:3: package \"p.class\" contains \"class\""));
  EXPECT_THAT(ErrorOf("syntax = 'proto3';\npackage p.std;\n"),
              HasSubstr("a/b.proto:2:1: package \"p.std\" contains \"std\""));
}

TEST(ProtobufFrontEnd, RefusesGenericServices) {
  EXPECT_THAT(ErrorOf("syntax = 'proto3';\n"
                      "option cc_generic_services = true;\n"
                      "service S {}\n"),
              HasSubstr("a/b.proto:3:1: option cc_generic_services"));
}

TEST(ProtobufFrontEnd, RefusesAMessageThatIsAKeywordSinceCpp20) {
  EXPECT_THAT(ErrorOf("syntax = 'proto3';\n"
                      "message concept {}\n"
                      "service S {\n"
                      "  rpc F(concept) returns (concept);\n"
                      "}\n"),
              HasSubstr("a/b.proto:4:3: S.F uses message concept"));
}

}  // namespace
}  // namespace verbena::codegen
