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
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "verbena/options.pb.h"

namespace verbena::codegen {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Files in memory, and their descriptors as protoc makes them, with line numbers.
class Files : public google::protobuf::compiler::SourceTree,
              public google::protobuf::compiler::MultiFileErrorCollector {
 public:
  explicit Files(std::map<std::string, std::string> texts) : texts_(std::move(texts)) {
    for (const google::protobuf::FileDescriptor* file :
         {google::protobuf::FileDescriptorProto::descriptor()->file(),
          Placement_descriptor()->file()}) {
      texts_.emplace(file->name(), file->DebugString());
    }
  }

  absl::StatusOr<ServiceFile> Read(const std::string& path, const GeneratorOptions& options = {}) {
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
  EXPECT_EQ(file->services[0].cpp_namespace, "p::q");
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
  EXPECT_THAT(method.request_codec, ElementsAre("::verbena::kProtobufCodec<::p::q::In_Nested>"));
  EXPECT_THAT(method.response_codec, ElementsAre("::verbena::kProtobufCodec<::p::q::Out>"));
  EXPECT_EQ(method.comment, " Says it.\n");
  EXPECT_EQ(method.streaming, StreamingKind::kUnary);
  EXPECT_EQ(method.line, 6);
  EXPECT_EQ(method.column, 3);
}

TEST(ProtobufFrontEnd, RefusesATypeCalledAsAMemberOfMessages) {
  EXPECT_THAT(
      ErrorOf("syntax = 'proto3'; package p;\nmessage M { message In {\n message New {} } }"),
      AllOf(HasSubstr("a/b.proto:3:2: p.M.In.New: \"New\" is also a member"),
            HasSubstr("; rename the type")));
  EXPECT_THAT(ErrorOf("syntax = 'proto3'; message Clear {}"), HasSubstr("1:20: Clear: "));
  EXPECT_THAT(ErrorOf("syntax = 'proto3'; message M { enum Swap { A = 0; } }"),
              HasSubstr("1:32: M.Swap: "));
  EXPECT_TRUE(ReadText("syntax = 'proto3'; message M { int32 New = 1; } enum Clear { A = 0; }"
                       "service S { rpc New(M) returns (M); }")
                  .ok());
}

TEST(ProtobufFrontEnd, NamespaceOfTheOption) {
  Files files({{"a.proto",
                "syntax = 'proto3'; package p; import 'b.proto'; message M {}"
                "service S { rpc F(M) returns (x.y.S); } service T { rpc F(M) returns (M); }"
                "service z { rpc F(M) returns (M); }"},
               {"b.proto", "syntax = 'proto3'; package x.y; import 'c.proto'; message S {}"},
               {"c.proto", "syntax = 'proto3'; package x.y.z; message M {}"}});
  const absl::StatusOr<ServiceFile> file = files.Read("a.proto", {.cpp_namespace = "x::y"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->placed_namespace, "p");
  EXPECT_EQ(file->services[0].cpp_namespace, "x::y");
  EXPECT_EQ(file->services[0].cpp_name, "S_");  // As a message there.
  EXPECT_EQ(file->services[0].full_name, "p.S");
  EXPECT_EQ(file->services[0].mock_stub_name, "MockSStub");
  EXPECT_EQ(file->services[0].methods[0].request_type, "::p::M");
  EXPECT_EQ(file->services[1].cpp_name, "T");
  EXPECT_EQ(file->services[2].cpp_name, "z_");  // As a namespace there.
}

TEST(ProtobufFrontEnd, NamesWithoutAPackage) {
  const absl::StatusOr<ServiceFile> file =
      ReadText("syntax = 'proto3'; message M {} service class { rpc delete(M) returns (M); }");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->services[0].cpp_namespace, "");
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

TEST(ProtobufFrontEnd, ServiceAvoidsConstantsOfAnEnumThatIsAKeyword) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "syntax = 'proto3'; package p; enum struct { Z = 0; } service struct_MAX {}"
      "service struct__Name {}");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->services[0].cpp_name, "struct_MAX_");
  EXPECT_EQ(file->services[1].cpp_name, "struct__Name_");
}

TEST(ProtobufFrontEnd, RefusesAPackageThatProtocCannotCompile) {
  EXPECT_THAT(ErrorOf("syntax = 'proto3';\n\n  package p.class;\n"),
              HasSubstr("a/b.proto:3:3: package \"p.class\" contains \"class\""));
  EXPECT_THAT(ErrorOf("syntax = 'proto3';\npackage p.std;\n"),
              HasSubstr("a/b.proto:2:1: package \"p.std\" contains \"std\""));
}

TEST(ProtobufFrontEnd, RefusesWhatHidesANamespaceOfGeneratedCode) {
  const std::string service = "message M {}\nservice S { rpc F(M) returns (M); }\n";
  for (const char* declaration : {"message absl {}", "message verbena {}", "message std {}",
                                  "enum google { Z = 0; }", "enum E { absl = 0; }"}) {
    const std::string schema = std::string("syntax = 'proto3';\n ") + declaration + "\n" + service;
    EXPECT_THAT(ErrorOf(schema), AllOf(HasSubstr("a/b.proto:2:"), HasSubstr("give the file a")))
        << schema;
  }
  for (const char* declaration :
       {"message flatbuffers {}", "message testing {}", "message O { message absl {} }"}) {
    EXPECT_TRUE(ReadText(std::string("syntax = 'proto3';") + declaration + service).ok());
  }
  EXPECT_TRUE(ReadText("syntax = 'proto3'; package p; message absl {}" + service).ok());
  EXPECT_TRUE(ReadText("syntax = 'proto3'; message absl {}").ok());
}

TEST(ProtobufFrontEnd, RefusesWhatHidesANamespaceInAnImportedFile) {
  Files files({{"a.proto",
                "syntax = 'proto2';\nmessage X { extensions 1 to 9; }\n"
                "extend X {\n  optional int32 absl = 1;\n}\n"},
               {"b.proto", "syntax = 'proto2'; package p; import 'a.proto'; service S {}"},
               {"c.proto", "syntax = 'proto3';\nmessage testing {} service S {}"}});
  EXPECT_THAT(std::string(files.Read("b.proto").status().message()),
              HasSubstr("a.proto:4:3: absl"));
  EXPECT_TRUE(files.Read("c.proto").ok());
  EXPECT_THAT(std::string(files.Read("c.proto", {.mocks = true}).status().message()),
              HasSubstr("c.proto:2:1: testing is in no package"));
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

// ---- Fields that travel outside of their message ---------------------------------------------

TEST(ProtobufFrontEnd, ReadsFieldsThatTravelOutside) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "syntax = 'proto3';\n"
      "package p.q;\n"
      "import 'verbena/options.proto';\n"
      "message Outer {\n"
      "  message Inner {\n"
      "    bytes inside = 1;\n"
      "    // What it holds.\n"
      "    bytes class = 2 [(verbena.placement) = PAYLOAD];\n"
      "    repeated bytes message = 7 [(verbena.placement) = PAYLOAD];\n"
      "    bytes also_inside = 3 [(verbena.placement) = MESSAGE];\n"
      "  }\n"
      "}\n"
      "service S { rpc F(Outer.Inner) returns (Outer); rpc G(Outer) returns (Outer.Inner); }\n");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->placed_messages.size(), 1u);
  const PlacedMessageModel& message = file->placed_messages[0];
  EXPECT_EQ(message.name, "Outer.Inner");
  EXPECT_EQ(message.cpp_name, "PlacedOuter_Inner");
  EXPECT_EQ(message.message_type, "::p::q::Outer_Inner");
  ASSERT_EQ(message.fields.size(), 2u);
  EXPECT_EQ(message.fields[0].cpp_name, "class_");
  EXPECT_EQ(message.fields[0].comment, " What it holds.\n");
  EXPECT_EQ(message.fields[0].number, 2u);
  EXPECT_FALSE(message.fields[0].repeated);
  EXPECT_EQ(message.fields[1].cpp_name, "message_");
  EXPECT_EQ(message.fields[1].number, 7u);
  EXPECT_TRUE(message.fields[1].repeated);

  const std::vector<MethodModel>& methods = file->services[0].methods;
  EXPECT_EQ(methods[0].request_type, "::p::q::PlacedOuter_Inner");
  EXPECT_THAT(methods[0].request_codec,
              ElementsAre("::verbena::kPlacedProtobufCodec<::p::q::PlacedOuter_Inner>"));
  EXPECT_EQ(methods[0].response_type, "::p::q::Outer");
  EXPECT_THAT(methods[0].response_codec, ElementsAre("::verbena::kProtobufCodec<::p::q::Outer>"));
  EXPECT_EQ(methods[1].request_type, "::p::q::Outer");
  EXPECT_EQ(methods[1].response_type, "::p::q::PlacedOuter_Inner");
}

TEST(ProtobufFrontEnd, PlacedNamesWithoutAPackage) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "syntax = 'proto2'; import 'verbena/options.proto';"
      "message M { optional bytes b = 1 [(verbena.placement) = PAYLOAD]; }"
      "service S { rpc F(M) returns (M); }");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->placed_messages[0].message_type, "::M");
  EXPECT_EQ(file->services[0].methods[0].request_type, "::PlacedM");
}

// Two files of package p: one.proto with `one` in it, and x.proto, which imports it, with `x`.
Files TwoFiles(const std::string& one, const std::string& x) {
  const std::string head = "syntax = 'proto3'; package p; import 'verbena/options.proto';";
  return Files({{"one.proto", head + one}, {"x.proto", head + "import 'one.proto';\n" + x}});
}

constexpr char kMessageA[] = "message A { bytes b = 1 [(verbena.placement) = PAYLOAD]; }";

TEST(ProtobufFrontEnd, PlacedMessageOfAnotherFileComesWithItsHeader) {
  Files files = TwoFiles(kMessageA, "service S { rpc F(A) returns (A); }");
  const absl::StatusOr<ServiceFile> file = files.Read("x.proto", {.include_prefix = "gen"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->message_headers,
              ElementsAre("gen/one.pb.h", "gen/one.verbena.h", "gen/x.pb.h"));
  EXPECT_EQ(file->services[0].methods[0].request_type, "::p::PlacedA");
  EXPECT_TRUE(file->placed_messages.empty());
}

TEST(ProtobufFrontEnd, PlacedMessageAvoidsTypesAndServices) {
  Files files =
      TwoFiles("message PlacedA {} service PlacedB {} message Placed { enum C { E = 0; } }",
               std::string(kMessageA) +
                   "message B { bytes b = 1 [(verbena.placement) = PAYLOAD]; }"
                   "message _C { bytes b = 1 [(verbena.placement) = PAYLOAD]; }"
                   "message D { bytes b = 1 [(verbena.placement) = PAYLOAD]; }"
                   "service PlacedD {} ");
  const absl::StatusOr<ServiceFile> file = files.Read("x.proto");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->placed_messages.size(), 4u);
  EXPECT_EQ(file->placed_messages[0].cpp_name, "PlacedA_");
  EXPECT_EQ(file->placed_messages[1].cpp_name, "PlacedB_");
  EXPECT_EQ(file->placed_messages[2].cpp_name, "Placed_C_");
  EXPECT_EQ(file->placed_messages[3].cpp_name, "PlacedD_");
  EXPECT_EQ(file->services[0].cpp_name, "PlacedD");
}

TEST(ProtobufFrontEnd, PlacedMessageIsCalledAlikeWhereverItIsUsed) {
  // x.proto sees more names than one.proto does: what is in x.proto gives way.
  Files files = TwoFiles("message PlacedA {}" + std::string(kMessageA),
                         "message A_ { bytes b = 1 [(verbena.placement) = PAYLOAD]; }"
                         "service S { rpc F(A) returns (A_); }");
  const absl::StatusOr<ServiceFile> one = files.Read("one.proto");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->placed_messages[0].cpp_name, "PlacedA_");
  const absl::StatusOr<ServiceFile> x = files.Read("x.proto");
  ASSERT_TRUE(x.ok()) << x.status();
  EXPECT_EQ(x->services[0].methods[0].request_type, "::p::PlacedA_");
  EXPECT_EQ(x->placed_messages[0].cpp_name, "PlacedA__");
  EXPECT_EQ(x->services[0].methods[0].response_type, "::p::PlacedA__");
}

TEST(ProtobufFrontEnd, ServiceAvoidsPlacedMessagesOfAnImportedFile) {
  Files files = TwoFiles(kMessageA, "service PlacedA { rpc F(A) returns (A); }");
  const absl::StatusOr<ServiceFile> file = files.Read("x.proto");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->services[0].methods[0].request_type, "::p::PlacedA");
  EXPECT_EQ(file->services[0].cpp_name, "PlacedA_");
}

TEST(ProtobufFrontEnd, RefusesATypeThatIsCalledAsThePlacedMessageOfAnImport) {
  for (const char* text : {"message PlacedA {}", "enum PlacedA { E = 0; }"}) {
    Files files = TwoFiles(kMessageA, text);
    EXPECT_THAT(
        files.Read("x.proto").status().message(),
        HasSubstr("x.proto:2:1: p.PlacedA has the name of the class PlacedA that is generated "
                  "for p.A (one.proto), which has fields marked PAYLOAD; rename one of them"))
        << text;
  }
}

// The message of the error that `declaration`, on line 3, leads to in a proto3 file.
std::string PayloadErrorOf(const std::string& declaration, const std::string& syntax = "proto3") {
  return ErrorOf("syntax = '" + syntax + "';\nimport 'verbena/options.proto';\n" + declaration);
}

TEST(ProtobufFrontEnd, RefusesPayloadThatIsNotBytes) {
  EXPECT_THAT(
      PayloadErrorOf("message M { string s = 1 [(verbena.placement) = PAYLOAD]; }"),
      HasSubstr("a/b.proto:3:13: M.s is marked PAYLOAD and is of type string, and only bytes "
                "and repeated bytes can travel outside of the message; remove the mark, or "
                "make it bytes"));
  EXPECT_THAT(
      PayloadErrorOf("message M { message N { M m = 1 [(verbena.placement) = PAYLOAD]; } }"),
      HasSubstr("a/b.proto:3:25: M.N.m is marked PAYLOAD and is of type M,"));
  EXPECT_THAT(
      PayloadErrorOf("message M { map<string, bytes> m = 1 [(verbena.placement) = PAYLOAD]; }"),
      HasSubstr("a/b.proto:3:13: M.m is marked PAYLOAD and is of type a map,"));
}

TEST(ProtobufFrontEnd, RefusesPayloadThatIsAnExtension) {
  EXPECT_THAT(PayloadErrorOf("message M { extensions 1 to 9; }\n"
                             "extend M { optional bytes b = 1 [(verbena.placement) = PAYLOAD]; }",
                             "proto2"),
              HasSubstr("a/b.proto:4:12: b is marked PAYLOAD and is an extension"));
  EXPECT_THAT(
      PayloadErrorOf("message M { extensions 1 to 9;\n"
                     "  extend M { optional bytes b = 1 [(verbena.placement) = PAYLOAD]; } }",
                     "proto2"),
      HasSubstr("a/b.proto:4:14: M.b is marked PAYLOAD and is an extension"));
}

TEST(ProtobufFrontEnd, RefusesPayloadInAOneofButNotOptional) {
  EXPECT_THAT(PayloadErrorOf("message M { oneof kind {\n"
                             "  bytes b = 1 [(verbena.placement) = PAYLOAD]; } }"),
              HasSubstr("a/b.proto:4:3: M.b is marked PAYLOAD and is in oneof kind"));
  const absl::StatusOr<ServiceFile> file = ReadText(
      "syntax = 'proto3'; import 'verbena/options.proto';"
      "message M { optional bytes b = 1 [(verbena.placement) = PAYLOAD]; }");
  EXPECT_TRUE(file.ok()) << file.status();
}

TEST(ProtobufFrontEnd, RefusesPayloadThatIsRequiredOrHasADefault) {
  EXPECT_THAT(PayloadErrorOf("message M { required bytes b = 1 [(verbena.placement) = PAYLOAD]; }",
                             "proto2"),
              HasSubstr("a/b.proto:3:13: M.b is marked PAYLOAD and is required"));
  EXPECT_THAT(
      PayloadErrorOf("message M {\n"
                     "  optional bytes b = 1 [default = 'b', (verbena.placement) = PAYLOAD];"
                     "}",
                     "proto2"),
      HasSubstr("a/b.proto:4:3: M.b is marked PAYLOAD and is given a default"));
}

TEST(ProtobufFrontEnd, RefusesPayloadWhoseNamesAreKeywordsSinceCpp20) {
  EXPECT_THAT(PayloadErrorOf("message M { bytes requires = 1 [(verbena.placement) = PAYLOAD]; }"),
              HasSubstr("a/b.proto:3:13: M.requires is marked PAYLOAD and is called \"requires\""));
  EXPECT_THAT(PayloadErrorOf("message concept { bytes b = 1 [(verbena.placement) = PAYLOAD]; }"),
              HasSubstr("a/b.proto:3:1: message concept has fields marked PAYLOAD"));
}

TEST(ProtobufFrontEnd, RefusesPayloadBelowARequestOrResponse) {
  const std::string head =
      "syntax = 'proto3'; package p; import 'verbena/options.proto'; message Empty {}"
      "message M { bytes b = 1 [(verbena.placement) = PAYLOAD]; }\n";
  EXPECT_THAT(
      ErrorOf(head + "message Holder { M m = 1; }\n"
                     "service S {\n"
                     "  rpc F(Holder) returns (Empty); }"),
      HasSubstr("a/b.proto:4:3: p.S.F uses message p.Holder, and below it p.Holder.m holds a "
                "message whose field p.M.b is marked PAYLOAD; only fields of the request or "
                "response message itself can travel outside of it: remove the mark, or move "
                "the field to p.Holder"));
  // Further down, in the response, repeated, as the value of a map.
  for (const char* field : {"repeated Middle", "map<int32, Middle>"}) {
    EXPECT_THAT(ErrorOf(head + "message Holder { " + field + " x = 1; }" +
                        "message Middle { map<string, M> ms = 1; Holder again = 2; }"
                        "service S { rpc F(Empty) returns (Holder); }"),
                HasSubstr("p.S.F uses message p.Holder, and below it p.Middle.ms holds"))
        << field;
  }
  // In itself.
  EXPECT_THAT(ErrorOf("syntax = 'proto3'; import 'verbena/options.proto';"
                      "message Tree { bytes b = 1 [(verbena.placement) = PAYLOAD]; Tree left = 2; }"
                      "service S { rpc F(Tree) returns (Tree); }"),
              HasSubstr("S.F uses message Tree, and below it Tree.left holds"));
  // It is the use that is wrong, and there is none.
  const absl::StatusOr<ServiceFile> file =
      ReadText(head + "message Holder { M m = 1; } service S { rpc F(M) returns (M); }");
  EXPECT_TRUE(file.ok()) << file.status();
}

}  // namespace
}  // namespace verbena::codegen
