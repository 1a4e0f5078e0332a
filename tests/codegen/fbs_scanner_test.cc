// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/fbs_scanner.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace verbena::codegen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "line:column" of a declaration; empty where there is none.
std::string PlaceOf(const FbsText& text, const std::string& name) {
  const auto found = text.declarations.find(name);
  if (found == text.declarations.end()) return "";
  return std::to_string(found->second.line) + ":" + std::to_string(found->second.column);
}

TEST(FbsScanner, FindsServicesAndMethods) {
  const FbsText text = ScanFbs(
      "namespace a.b;\n"
      "rpc_service Greeter {\n"
      "  SayHello(Request):a.c.Reply;\n"
      "  Watch(Request):Reply (streaming: \"server\", idempotent);   Third\n"
      "    (Request):Reply;\n"
      "}\n");
  EXPECT_EQ(PlaceOf(text, "a.b.Greeter"), "2:13");
  EXPECT_EQ(PlaceOf(text, "a.b.Greeter.SayHello"), "3:3");
  EXPECT_EQ(PlaceOf(text, "a.b.Greeter.Watch"), "4:3");
  EXPECT_EQ(PlaceOf(text, "a.b.Greeter.Third"), "4:61");
  EXPECT_EQ(PlaceOf(text, "a.b.Greeter.Request"), "");
  EXPECT_EQ(PlaceOf(text, "a.b.Greeter.idempotent"), "");
}

TEST(FbsScanner, FindsTypesAndTheirMembers) {
  const FbsText text = ScanFbs(
      "table T (priority: 1) { a:int = 3; b:[ubyte] (nested_flatbuffer: \"T\"); c:[T:4]; }\n"
      "struct S { x:float; }\n"
      "enum E : byte (bit_flags) { One = 1, Two (attribute), Three }\n"
      "union U { T, Other: a.T }\n");
  EXPECT_EQ(PlaceOf(text, "T"), "1:7");
  EXPECT_EQ(PlaceOf(text, "T.a"), "1:25");
  EXPECT_EQ(PlaceOf(text, "T.b"), "1:36");
  EXPECT_EQ(PlaceOf(text, "T.c"), "1:72");
  EXPECT_EQ(PlaceOf(text, "T.T"), "");
  EXPECT_EQ(PlaceOf(text, "S.x"), "2:12");
  EXPECT_EQ(PlaceOf(text, "E"), "3:6");
  EXPECT_EQ(PlaceOf(text, "E.One"), "3:29");
  EXPECT_EQ(PlaceOf(text, "E.Two"), "3:38");
  EXPECT_EQ(PlaceOf(text, "E.Three"), "3:55");
  EXPECT_EQ(PlaceOf(text, "U.Other"), "4:14");
  EXPECT_EQ(PlaceOf(text, "U.a"), "");
}

TEST(FbsScanner, NamespacesReplaceEachOther) {
  const FbsText text = ScanFbs(
      "table A {}\n"
      "namespace x . y;\n"
      "table B {}\n"
      "  namespace z;\n"
      "table C {}\n"
      "namespace;\n"
      "table D {}\n");
  for (const char* name : {"A", "x.y.B", "z.C", "D"}) EXPECT_NE(PlaceOf(text, name), "") << name;
  ASSERT_EQ(text.namespaces.size(), 3u);
  EXPECT_THAT(text.namespaces[0].components, ElementsAre("x", "y"));
  EXPECT_EQ(text.namespaces[1].location.line, 4);
  EXPECT_EQ(text.namespaces[1].location.column, 3);
  EXPECT_THAT(text.namespaces[2].components, IsEmpty());
}

TEST(FbsScanner, CommentsAndStringsHideWhatIsInThem) {
  const FbsText text = ScanFbs(
      "/* table A {} \" */ // table B {} \"\n"
      "attribute \"table C { \\\" // /*\";\n"
      "/* one line\n"
      "   and another */ table D { s:string = \"}; e:int\"; f:int; }\n"
      "/// rpc_service E { F(D):D; }\n"
      "table G {}");
  for (const char* name : {"A", "B", "C", "E", "D.e"}) EXPECT_EQ(PlaceOf(text, name), "") << name;
  EXPECT_EQ(PlaceOf(text, "D"), "4:25");
  EXPECT_EQ(PlaceOf(text, "D.f"), "4:52");
  EXPECT_EQ(PlaceOf(text, "G"), "6:7");
}

TEST(FbsScanner, FindsIncludesAndTheFilesStatements) {
  const FbsText text = ScanFbs(
      "native_include \"a.h\";\n"
      "include \"dir/x.fbs\"; include \"y.fbs\";\n"
      "table T {}\n"
      "root_type T;\n"
      " file_identifier \"TTTT\";\n"
      "file_extension \"t\";\n");
  EXPECT_THAT(text.includes, ElementsAre("dir/x.fbs", "y.fbs"));
  EXPECT_EQ(text.file_identifier.line, 5);
  EXPECT_EQ(text.file_identifier.column, 2);
  EXPECT_EQ(text.file_extension.line, 6);
}

TEST(FbsScanner, KeywordsAreNamesWhereNamesStand) {
  const FbsText text = ScanFbs(
      "table table { table:table; namespace:int; include:string; }\n"
      "rpc_service rpc_service { rpc_service(table):table; }\n");
  EXPECT_EQ(PlaceOf(text, "table.namespace"), "1:28");
  EXPECT_EQ(PlaceOf(text, "rpc_service.rpc_service"), "2:27");
  EXPECT_THAT(text.includes, IsEmpty());
}

TEST(FbsScanner, SkipsDataAndAByteOrderMark) {
  const FbsText text = ScanFbs("\xef\xbb\xbftable T {} { table: { a: 1 }, b: [ { } ] } table U {}");
  EXPECT_EQ(PlaceOf(text, "T"), "1:7");
  EXPECT_EQ(PlaceOf(text, "U"), "1:50");
}

TEST(FbsScanner, EndsWhereTheTextDoes) {
  for (const char* text :
       {"", "table", "table T", "table T {", "table T { a", "rpc_service S { F(", "namespace a.",
        "/* open", "\"open", "include", "T { } ]", "\\", "\"\\"}) {
    ScanFbs(text);
  }
}

}  // namespace
}  // namespace verbena::codegen
