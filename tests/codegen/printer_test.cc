// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/printer.h"

#include <string>

#include "gtest/gtest.h"

namespace verbena::codegen {
namespace {

TEST(Printer, ReplacesVariablesAndIndentsLines) {
  Printer printer;
  printer.Print("class $a$ {\n", {{"a", "X"}});
  printer.Indent();
  printer.Print("\n$a$ $b$;\n", {{"a", "int"}, {"b", "y"}});
  printer.Outdent();
  printer.Print("};\n");
  EXPECT_EQ(printer.text(), "class X {\n\n  int y;\n};\n");
}

TEST(Printer, ListFitsInExactlyOneHundredColumns) {
  Printer printer;
  const std::string argument(97, 'a');
  printer.PrintList("f(", {argument}, ")");
  EXPECT_EQ(printer.text(), "f(" + argument + ")\n");
}

TEST(Printer, ListOfOneHundredAndOneColumnsIsBroken) {
  Printer printer;
  const std::string first(49, 'a');
  const std::string second(47, 'b');  // 2 + 49 + 2 + 47 + 1 = 101.
  printer.PrintList("f(", {first, second}, ")");
  EXPECT_EQ(printer.text(), "f(" + first + ",\n  " + second + ")\n");
}

TEST(Printer, ListMovesBelowWhenAnArgumentIsTooLongBesideTheHead) {
  Printer printer;
  const std::string head = std::string(20, 'f') + "(";
  const std::string longest(90, 'a');
  printer.PrintList(head, {longest, "b"}, ");");
  EXPECT_EQ(printer.text(), head + "\n    " + longest + ", b);\n");
}

TEST(Printer, ArgumentLongerThanALineStandsAlone) {
  Printer printer;
  const std::string longest(120, 'a');
  printer.PrintList("f(", {"x", longest, "b"}, ");");
  EXPECT_EQ(printer.text(), "f(\n    x,\n    " + longest + ",\n    b);\n");
}

TEST(Printer, FunctionFitsInExactlyOneHundredColumns) {
  Printer printer;
  printer.Indent();
  const std::string statement(89, 's');  // 2 + 4 + 3 + 89 + 2 = 100.
  printer.PrintFunction("f(x)", statement);
  printer.PrintFunction("f(xy)", statement);
  EXPECT_EQ(printer.text(),
            "  f(x) { " + statement + " }\n  f(xy) {\n    " + statement + "\n  }\n");
}

TEST(Printer, CommentKeepsItsLines) {
  Printer printer;
  printer.PrintComment(" One.\n\n   Two,\n/ three\nand four.\n");
  EXPECT_EQ(printer.text(), "// One.\n//\n//   Two,\n/// three\n// and four.\n");
}

TEST(Printer, CommentNeverContinuesOnTheNextLine) {
  Printer printer;
  printer.PrintComment(" a \\ b \\\n c\\\\ \t\r\n");
  EXPECT_EQ(printer.text(), "// a \\ b\n// c\n");
}

TEST(Printer, CommentNeverContinuesByATrigraph) {
  Printer printer;
  printer.PrintComment(" a?\?/b\n c?\?/\n d\\?\?/ \\?\?/ \n");
  EXPECT_EQ(printer.text(), "// a?\?/b\n// c\n// d\n");
}

TEST(Printer, EveryLineOfACommentIsAComment) {
  Printer printer;
  printer.PrintComment(" a\r b\r\n c\v d\f e\xc2\x85 f\xe2\x80\xa8 g\xe2\x80\xa9 h\r\n");
  EXPECT_EQ(printer.text(), "// a\n// b\n// c\n// d\n// e\n// f\n// g\n// h\n");
}

TEST(Printer, CommentIsWhatItLooksLike) {
  Printer printer;
  // Each of the characters that change a line's direction, and control characters.
  printer.PrintComment(
      " \xd8\x9c\xe2\x80\x8e\xe2\x80\x8f."
      "\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae."
      "\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9.\x1b.\x7f.\xc2\x9b");
  printer.PrintComment(std::string_view(" nul\0nul", 8));
  EXPECT_EQ(printer.text(), "// .....\n// nulnul\n");
}

TEST(Printer, CommentIsUtf8) {
  Printer printer;
  printer.PrintComment(" \xc3\xbc \xe6\xbc\xa2 \xf0\x9f\x9a\x80 \xe2\x80\x8b");
  // Stray, too long, a surrogate, too large, and cut off by the end of the line or of all.
  printer.PrintComment(" \x80 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x80\n \xf0\x9f");
  EXPECT_EQ(printer.text(),
            "// \xc3\xbc \xe6\xbc\xa2 \xf0\x9f\x9a\x80 \xe2\x80\x8b\n// ? ?? ??? ???? ??\n// ??\n");
}

TEST(Printer, EmptyCommentIsNothing) {
  Printer printer;
  printer.PrintComment("");
  printer.PrintComment("\n\n");
  EXPECT_EQ(printer.text(), "");
}

TEST(PrinterDeathTest, MistakesInATemplateAbort) {
  Printer printer;
  EXPECT_DEATH(printer.Print("$missing$\n", {{"other", "x"}}), "missing");
  EXPECT_DEATH(printer.Print("no newline"), "newline");
  EXPECT_DEATH(printer.Print("half a $variable\n"), "second");
}

}  // namespace
}  // namespace verbena::codegen
