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
