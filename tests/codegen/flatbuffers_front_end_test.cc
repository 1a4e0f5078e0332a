// SPDX-License-Identifier: Apache-2.0
//
// From the text of .fbs files, which flatc reads, to the model.

#include "verbena/codegen/flatbuffers_front_end.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "verbena/codegen/fbs_tree.h"
#include "verbena/codegen/flatc.h"

namespace verbena::codegen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

// Writes `texts` into a folder of the test's own, and reads `path` there.
class Files {
 public:
  explicit Files(const std::map<std::string, std::string>& texts) {
    folder_ = fs::path(testing::TempDir()) / "fbs";
    fs::remove_all(folder_);
    for (const auto& [path, text] : texts) {
      fs::create_directories((folder_ / path).parent_path());
      std::ofstream(folder_ / path) << text;
    }
  }

  // What verbena-flatc does with each input.
  absl::StatusOr<ServiceFile> Read(const std::string& path,
                                   const FlatbuffersOptions& options = {}) const {
    const FbsTree tree({folder_.string()});
    const Flatc flatc(std::getenv("FLATC"), {folder_.string()});
    const std::string input = (folder_ / path).string();
    absl::StatusOr<std::string> bfbs = flatc.BinarySchema(input, false);
    if (!bfbs.ok()) return bfbs.status();
    const std::string main = FbsTree::KeyOf(input);
    const absl::StatusOr<std::vector<std::string>> others = FilesOfMethodTypes(*bfbs, main);
    if (!others.ok()) return others.status();
    absl::StatusOr<FbsFiles> files = tree.Read(input);
    if (!files.ok()) return files.status();
    files->at(main).bfbs = *bfbs;
    for (const std::string& other : *others) {
      files->at(other).bfbs = flatc.BinarySchema(files->at(other).path, false).value();
    }
    return ReadFlatbuffersFile(*files, main, options);
  }

 private:
  fs::path folder_;
};

absl::StatusOr<ServiceFile> ReadText(const std::string& text) {
  return Files({{"a/b.fbs", text}}).Read("a/b.fbs");
}

// The message of the error that `text` leads to as "a/b.fbs".
std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<ServiceFile> file = ReadText(text);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(file.status().message());
}

TEST(FlatbuffersFrontEnd, ReadsAService) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "namespace p.q;\n"
      "/// Of one,\n"
      "/// and more.\n"
      "rpc_service Greeter {\n"
      "  /// Says it.\n"
      "  SayHello(In):Out;\n"
      "}\n"
      "table In { a:int; }\n"
      "table Out { a:int; }\n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->generator, "verbena-flatc");
  EXPECT_EQ(file->source_path, "a/b.fbs");
  EXPECT_EQ(file->output_stem, "a/b");
  EXPECT_EQ(file->header_path, "a/b.verbena.h");
  EXPECT_EQ(file->codec_header, "verbena/rpc/flatbuffers_codec.h");
  EXPECT_THAT(file->message_headers, ElementsAre("a/b_generated.h", "verbena/rpc/flat_message.h"));
  EXPECT_TRUE(file->placed_messages.empty());
  ASSERT_EQ(file->services.size(), 1u);
  const ServiceModel& service = file->services[0];
  EXPECT_EQ(service.name, "Greeter");
  EXPECT_EQ(service.full_name, "p.q.Greeter");
  EXPECT_EQ(service.cpp_name, "Greeter");
  EXPECT_EQ(service.cpp_namespace, "p::q");
  EXPECT_EQ(service.mock_stub_name, "MockGreeterStub");
  EXPECT_EQ(service.mock_async_name, "MockGreeterAsync");
  EXPECT_EQ(service.comment, " Of one,\n and more.\n");
  EXPECT_EQ(service.line, 4);
  EXPECT_EQ(service.column, 13);
  ASSERT_EQ(service.methods.size(), 1u);
  const MethodModel& method = service.methods[0];
  EXPECT_EQ(method.full_name, "p.q.Greeter/SayHello");
  EXPECT_EQ(method.cpp_name, "SayHello");
  EXPECT_EQ(method.request_type, "::verbena::FlatMessage<::p::q::In>");
  EXPECT_EQ(method.response_type, "::verbena::FlatMessage<::p::q::Out>");
  EXPECT_THAT(method.request_codec, ElementsAre("::verbena::kFlatBuffersCodec<::p::q::In>"));
  EXPECT_THAT(method.response_codec, ElementsAre("::verbena::kFlatBuffersCodec<::p::q::Out>"));
  EXPECT_EQ(method.comment, " Says it.\n");
  EXPECT_EQ(method.streaming, StreamingKind::kUnary);
  EXPECT_EQ(method.line, 6);
  EXPECT_EQ(method.column, 3);
}

TEST(FlatbuffersFrontEnd, ServicesAreInTheOrderOfTheFile) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "table T {} namespace z; rpc_service Z { B(T):T; A(T):T; }"
      "namespace; rpc_service Z { F(T):T; } rpc_service A { F(T):T; }");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->services.size(), 3u);
  EXPECT_EQ(file->services[0].full_name, "z.Z");
  EXPECT_EQ(file->services[0].methods[0].name, "B");
  EXPECT_EQ(file->services[1].full_name, "Z");
  EXPECT_EQ(file->services[1].cpp_namespace, "");
  EXPECT_EQ(file->services[1].methods[0].full_name, "Z/F");
  EXPECT_EQ(file->services[1].methods[0].request_type, "::verbena::FlatMessage<::T>");
  EXPECT_EQ(file->services[2].full_name, "A");
}

TEST(FlatbuffersFrontEnd, FileWithoutServices) {
  const absl::StatusOr<ServiceFile> file = ReadText("table T {}");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->services.empty());
  EXPECT_THAT(file->message_headers, ElementsAre("a/b_generated.h"));
}

TEST(FlatbuffersFrontEnd, TellsTheStreamingKindsApart) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "table T {} rpc_service S { A(T):T (streaming: \"none\"); B(T):T (streaming: \"client\");"
      "C(T):T (streaming: \"server\"); D(T):T (streaming: \"bidi\", idempotent); }");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<MethodModel>& methods = file->services[0].methods;
  EXPECT_EQ(methods[0].streaming, StreamingKind::kUnary);
  EXPECT_EQ(methods[1].streaming, StreamingKind::kClientStreaming);
  EXPECT_EQ(methods[2].streaming, StreamingKind::kServerStreaming);
  EXPECT_EQ(methods[3].streaming, StreamingKind::kBidirectional);
}

TEST(FlatbuffersFrontEnd, RefusesAnUnknownStreaming) {
  EXPECT_EQ(ErrorOf("table T {}\nrpc_service S {\n  A(T):T (streaming: \"both\");\n}"),
            "a/b.fbs:3:3: S.A: the attribute streaming is \"both\", which is not known; give "
            "\"none\", \"client\", \"server\" or \"bidi\"");
  EXPECT_THAT(ErrorOf("table T {} rpc_service S { A(T):T (streaming); }"),
              HasSubstr("the attribute streaming is without a value"));
}

TEST(FlatbuffersFrontEnd, TypesOfOtherFilesAndNamespaces) {
  const Files files({{"a/main.fbs",
                      "include \"c/one.fbs\"; namespace a; table Own {}"
                      "rpc_service S { F(c.One):d.e.Two; G(Own):c.One; }"},
                     {"c/one.fbs",
                      "include \"two.fbs\"; namespace c; table One {}"
                      "rpc_service Other { F(One):One; }"},
                     {"c/two.fbs", "namespace d.e; table Two {}"}});
  const absl::StatusOr<ServiceFile> file = files.Read("a/main.fbs");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->services.size(), 1u);  // Those of included files are theirs.
  EXPECT_EQ(file->services[0].methods[0].request_type, "::verbena::FlatMessage<::c::One>");
  EXPECT_EQ(file->services[0].methods[0].response_type, "::verbena::FlatMessage<::d::e::Two>");
  EXPECT_THAT(file->message_headers,
              ElementsAre("a/main_generated.h", "c/one_generated.h", "c/two_generated.h",
                          "verbena/rpc/flat_message.h"));
}

TEST(FlatbuffersFrontEnd, HeadersAreCalledAsTheOptionsSay) {
  const Files files({{"a/main.v1.fbs", "include \"c/one.fbs\"; rpc_service S { F(One):One; }"},
                     {"c/one.fbs", "table One {}"}});
  FlatbuffersOptions options;
  options.generator.include_prefix = "gen/x";
  options.filename_suffix = ".fb";
  options.filename_ext = "hpp";
  absl::StatusOr<ServiceFile> file = files.Read("a/main.v1.fbs", options);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->output_stem, "a/main.v1");
  EXPECT_EQ(file->header_path, "gen/x/a/main.v1.verbena.h");
  EXPECT_THAT(file->message_headers, ElementsAre("gen/x/a/main.v1.fb.hpp", "gen/x/c/one.fb.hpp",
                                                 "verbena/rpc/flat_message.h"));
  options.keep_prefix = false;
  file = files.Read("a/main.v1.fbs", options);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->header_path, "gen/x/main.v1.verbena.h");
  EXPECT_THAT(file->message_headers, ElementsAre("gen/x/main.v1.fb.hpp", "gen/x/one.fb.hpp",
                                                 "verbena/rpc/flat_message.h"));
}

TEST(FlatbuffersFrontEnd, NamespaceOfTheOption) {
  FlatbuffersOptions options;
  options.generator.cpp_namespace = "x::y";
  const Files files({{"a/b.fbs",
                      "namespace x.y; table S {} namespace p; table T {}"
                      "rpc_service S { F(T):x.y.S; } rpc_service U { F(T):T; }"},
                     {"two.fbs",
                      "namespace p; table T {} rpc_service S { F(T):T; }\n"
                      "namespace q; rpc_service S { F(p.T):p.T; }"}});
  const absl::StatusOr<ServiceFile> file = files.Read("a/b.fbs", options);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->services[0].cpp_namespace, "x::y");
  EXPECT_EQ(file->services[0].cpp_name, "S_");  // As a type there.
  EXPECT_EQ(file->services[0].full_name, "p.S");
  EXPECT_EQ(file->services[0].methods[0].full_name, "p.S/F");
  EXPECT_EQ(file->services[0].methods[0].request_type, "::verbena::FlatMessage<::p::T>");
  EXPECT_EQ(file->services[1].cpp_name, "U");
  EXPECT_EQ(files.Read("two.fbs", options).status().message(),
            "two.fbs:2:26: services p.S and q.S would both be ::x::y::S; leave out the option "
            "namespace, or rename one of them");
}

// ---- Formats ----------------------------------------------------------------------------------

// Codec arguments of the request of the first method.
std::string FormatOf(const absl::StatusOr<ServiceFile>& file) {
  EXPECT_TRUE(file.ok()) << file.status();
  const std::vector<std::string>& codec = file->services[0].methods[0].request_codec;
  return codec.size() == 1 ? "" : codec[1];
}

TEST(FlatbuffersFrontEnd, IdentifierOfTheRootTypeOnly) {
  const std::string schema = "table T {} table U {} root_type T; file_identifier \"TTTT\";";
  EXPECT_EQ(FormatOf(ReadText(schema + "rpc_service S { F(T):U; }")),
            "::verbena::FlatFormat{.identifier = \"TTTT\"}>");
  EXPECT_EQ(FormatOf(ReadText(schema + "rpc_service S { F(U):T; }")), "");
  EXPECT_EQ(FormatOf(ReadText("table T {} root_type T; rpc_service S { F(T):T; }")), "");
}

TEST(FlatbuffersFrontEnd, IdentifierIsOfTheFileThatDeclares) {
  const Files files(
      {{"main.fbs",
        "include \"one.fbs\"; table T {} root_type One; file_identifier \"MAIN\";"
        "rpc_service S { F(One):T; }"},
       {"one.fbs", "include \"two.fbs\"; table One {} root_type One; file_identifier \"ONE1\";"},
       {"other.fbs", "include \"two.fbs\"; rpc_service S { F(Two):Two; }"},
       {"two.fbs", "table Two {} file_identifier \"TWO2\";"}});
  EXPECT_EQ(FormatOf(files.Read("main.fbs")), "::verbena::FlatFormat{.identifier = \"ONE1\"}>");
  EXPECT_EQ(FormatOf(files.Read("other.fbs")), "");  // No root_type.
}

struct AlignmentCase {
  const char* schema;  // With a table T.
  int alignment;
};

TEST(FlatbuffersFrontEnd, AlignmentOfWhatIsReachable) {
  const std::string types =
      "struct V16 (force_align: 16) { a:ulong; b:ulong; } struct In { v:V16; }"
      "struct V8 { a:ulong; } table Has16 { v:V16; }";
  for (const auto& [schema, alignment] : {
           AlignmentCase{"table T { a:ulong; b:[double]; v:V8; }", 8},
           AlignmentCase{"table T { v:V16; }", 16},
           AlignmentCase{"table T { v:In; }", 16},
           AlignmentCase{"table T { v:[V16]; }", 16},
           AlignmentCase{"table T { v:[In]; }", 16},
           AlignmentCase{"table T { t:Has16; }", 16},
           AlignmentCase{"table T { t:[Has16]; }", 16},
           AlignmentCase{"table T { t:T; ts:[T]; }", 8},
           AlignmentCase{"table T { a:A; } table A { t:T; b:B; } table B { v:V16; }", 16},
           AlignmentCase{"table T { d:[ubyte] (force_align: 32); }", 32},
           AlignmentCase{"table T { d:[ubyte] (force_align: 32); v:V16; }", 32},
           AlignmentCase{"table T { d:[ubyte] (force_align: 4); }", 8},
           AlignmentCase{"union U { Has16 } table T { u:U; }", 16},
           AlignmentCase{"union U { Has16 } table T { u:[U]; }", 16},
           AlignmentCase{"union U { V16 } table T { u:U; }", 16},
           AlignmentCase{"table T { n:[ubyte] (nested_flatbuffer: \"Has16\"); }", 16},
           AlignmentCase{"namespace n; table N { v:V16; }"
                         "table M { n:[ubyte] (nested_flatbuffer: \"N\"); }"
                         "namespace; table T { m:n.M; }",
                         16},
           AlignmentCase{"table T { v:V16 (deprecated); }", 16},
           AlignmentCase{"table T {} table NotReached { t:T; v:V16; }", 8},
       }) {
    EXPECT_EQ(FormatOf(ReadText(types + schema + "rpc_service S { F(T):T; }")),
              alignment == 8
                  ? ""
                  : "::verbena::FlatFormat{.alignment = " + std::to_string(alignment) + "}>")
        << schema;
  }
}

TEST(FlatbuffersFrontEnd, IdentifierAndAlignment) {
  EXPECT_EQ(FormatOf(ReadText("table T { d:[ubyte] (force_align: 16); } rpc_service S { F(T):T; }"
                              "root_type T; file_identifier \"A, B\";")),
            "::verbena::FlatFormat{.identifier = \"A, B\", .alignment = 16}>");
}

// ---- Names ------------------------------------------------------------------------------------

TEST(FlatbuffersFrontEnd, TypesAreCalledAsFlatcCallsThem) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "namespace p; table class {} table import {} table final {} table concept {}"
      "rpc_service S { F(class):import; G(final):concept; }");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<MethodModel>& methods = file->services[0].methods;
  EXPECT_EQ(methods[0].request_type, "::verbena::FlatMessage<::p::class_>");
  EXPECT_EQ(methods[0].response_type, "::verbena::FlatMessage<::p::import_>");
  EXPECT_EQ(methods[1].request_type, "::verbena::FlatMessage<::p::final>");
  EXPECT_EQ(methods[1].response_type, "::verbena::FlatMessage<::p::concept_>");
}

TEST(FlatbuffersFrontEnd, ServiceGivesWayToWhatFlatcDeclares) {
  const std::string types =
      "namespace p.sub; table X {} namespace p; table T { a:int; } enum E : byte { V }"
      "struct St { a:int; } union U { T } ";
  for (const char* name : {"T",
                           "E",
                           "St",
                           "U",
                           "TBuilder",
                           "CreateT",
                           "CreateTDirect",
                           "TT",
                           "GetT",
                           "VerifyTBuffer",
                           "E_V",
                           "E_MIN",
                           "EnumNamesE",
                           "UTraits",
                           "VerifyU",
                           "StTypeTable",
                           "sub",
                           "class",
                           "Stub",
                           "std",
                           "flatbuffers"}) {
    const absl::StatusOr<ServiceFile> file =
        ReadText(types + "rpc_service " + name + " { F(T):T; }");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->services[0].cpp_name, std::string(name) + "_");
    EXPECT_EQ(file->services[0].full_name, std::string("p.") + name);
  }
  for (const char* name : {"V", "E_W", "StBuilder", "X", "p", "Mock"}) {
    const absl::StatusOr<ServiceFile> file =
        ReadText(types + "rpc_service " + name + " { F(T):T; }");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->services[0].cpp_name, name);
  }
}

TEST(FlatbuffersFrontEnd, MocksGiveWay) {
  const absl::StatusOr<ServiceFile> file = ReadText(
      "table MockSStub {} rpc_service S { F(MockSStub):MockSStub; }"
      "rpc_service MockSAsync { F(MockSStub):MockSStub; }");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->services[0].mock_stub_name, "MockSStub_");
  EXPECT_EQ(file->services[0].mock_async_name, "MockSAsync_");
  EXPECT_EQ(file->services[1].cpp_name, "MockSAsync");
}

// ---- What can't be compiled -------------------------------------------------------------------

struct RefusedCase {
  const char* schema;
  const char* error;  // Its start, behind "a/b.fbs:".
};

TEST(FlatbuffersFrontEnd, RefusesWhatFlatcMakesNoCppOf) {
  for (const auto& [schema, error] : {
           RefusedCase{"table T {}\nnamespace a.class;",
                       "2:1: the namespace contains \"class\", which is reserved"},
           RefusedCase{"namespace a.std; table T {}",
                       "1:1: the namespace contains \"std\" below its top"},
           RefusedCase{"namespace a.flatbuffers;", "1:1: the namespace contains \"flatbuffers\""},
           RefusedCase{"table\n NULL {}", "2:2: NULL: \"NULL\" is reserved in C++"},
           RefusedCase{"namespace n; struct char8_t { a:int; }", "1:21: n.char8_t: \"char8_t\""},
           RefusedCase{"enum errno : byte { A }", "1:6: errno: \"errno\" is reserved"},
           RefusedCase{"namespace n; table std {}", "1:20: n.std: a type \"std\" hides"},
           RefusedCase{"namespace flatbuffers; table Table {}", "1:30: flatbuffers.Table is what"},
           RefusedCase{"table T { a:int; assert:int; }", "1:18: T.assert: \"assert\" is reserved"},
           RefusedCase{"struct T { consteval:int; }", "1:12: T.consteval: \"consteval\""},
           RefusedCase{"table T { Builder:int; }", "1:11: T.Builder: \"Builder\" is also"},
           RefusedCase{"table T { fbb_:int; }", "1:11: T.fbb_: \"fbb_\" is also"},
           RefusedCase{"table class {} table T { c:class; }", "1:26: T.c is made of class"},
           RefusedCase{"table class {} table T { c:[class]; }", "1:26: T.c is made of class"},
           RefusedCase{"table new {} union U { new }", "1:20: U is made of new"},
           RefusedCase{"table T {} table TBuilder {}",
                       "1:18: TBuilder: flatc's header declares TBuilder for T, too"},
           RefusedCase{"table T {} enum CreateT : byte { A }",
                       "1:17: CreateT: flatc's header declares CreateT for T, too"},
           RefusedCase{"table class {} table class_ {}", "1:22: class_: flatc's header declares"},
           RefusedCase{"enum E : byte { NONE, MAX }", "1:23: E.MAX: flatc's header gives every"},
           RefusedCase{"struct S (force_align: 32) { a:float; }",
                       "1:30: S.a is followed by 28 bytes of padding"},
           RefusedCase{"table T {} root_type T;\nfile_identifier \"\\\"abc\";",
                       "2:1: file_identifier contains"},
           RefusedCase{"namespace a.Other; table X {} namespace Other; table T {}"
                       "namespace a; table Q { t:Other.T; }",
                       "1:81: a.Q.t is made of Other.T, which flatc writes without"},
           RefusedCase{"table T {} rpc_service S { F(T):T; }\n table absl {}",
                       "2:8: a type absl in no namespace hides namespace absl"},
           RefusedCase{"table T {} rpc_service S { F(T):T; }\n enum verbena : byte { A }",
                       "2:7: a type verbena in no namespace hides"},
           RefusedCase{"namespace n.n; table T {} table U { t:T; }",
                       "1:37: n.n.U.t is made of n.n.T"},
       }) {
    EXPECT_THAT(ErrorOf(schema), StartsWith(std::string("a/b.fbs:") + error)) << schema;
    EXPECT_THAT(ErrorOf(schema), HasSubstr("; ")) << "a remedy";
  }
}

TEST(FlatbuffersFrontEnd, RefusesNothingThatCompiles) {
  for (const char* schema : {
           "namespace std; table T {}",
           "namespace n; table class { delete:int; operator:string; } ",
           "enum E : byte (bit_flags) { MIN, MAX }",
           "struct S { Builder:int; fbb_:int; }",
           "namespace a; table T {} namespace a.b; table U { t:a.T; us:[U]; }",
           "struct S (force_align: 32) { a:[float:8]; }",
           "enum E : byte { NULL, assert }",
       }) {
    EXPECT_TRUE(ReadText(schema).ok()) << schema << ReadText(schema).status();
  }
}

TEST(FlatbuffersFrontEnd, RefusesTwoFilesWithOneIncludeGuard) {
  const Files files({{"a/x-y.fbs", "include \"b/xy.fbs\"; namespace p.q; table A {}"},
                     {"a/z.fbs", "include \"b/xy.fbs\"; namespace p.q; table A {}"},
                     {"a/xy.fbs", "include \"b/xy.fbs\"; namespace p.q; table A {} namespace p;"},
                     {"b/xy.fbs", "namespace P.q; table B {}"}});
  EXPECT_THAT(std::string(files.Read("a/x-y.fbs").status().message()),
              StartsWith("a/x-y.fbs:1:1: includes b/xy.fbs, and flatc makes the same include"));
  EXPECT_TRUE(files.Read("a/z.fbs").ok());
  EXPECT_TRUE(files.Read("a/xy.fbs").ok());
}

TEST(FlatbuffersFrontEnd, RefusesWhatIsNoBinarySchema) {
  for (const std::string& bfbs : {std::string(), std::string("garbage that is long enough to read"),
                                  std::string(100, '\0')}) {
    EXPECT_EQ(FilesOfMethodTypes(bfbs, "//a.fbs").status().code(), absl::StatusCode::kInternal);
    const FbsFiles files = {{"//a.fbs", {.name = "a.fbs", .path = "", .text = "", .bfbs = bfbs}}};
    EXPECT_EQ(ReadFlatbuffersFile(files, "//a.fbs", {}).status().code(),
              absl::StatusCode::kInternal);
  }
}

}  // namespace
}  // namespace verbena::codegen
