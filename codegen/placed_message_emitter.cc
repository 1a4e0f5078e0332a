// SPDX-License-Identifier: Apache-2.0
//
// As in emitter.cc, names from outside are written in full. The class's own members are listed in
// names.cc (kFieldHelpers, DerivedNames), so that a field of the same name gives way.

#include "verbena/codegen/placed_message_emitter.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace verbena::codegen {
namespace {

std::string MemberOf(const PlacedFieldModel& field) {
  return absl::StrCat("verbena_", field.cpp_name, "_");
}

std::string TypeOf(const PlacedFieldModel& field) {
  return field.repeated ? "::std::vector<::verbena::Buffer>" : "::verbena::Buffer";
}

void PrintAccessors(const PlacedFieldModel& field, Printer& printer) {
  const std::string& name = field.cpp_name;
  const std::string member = MemberOf(field);
  printer.Print("\n");
  printer.PrintComment(field.comment);
  printer.PrintFunction(absl::StrCat("const ", TypeOf(field), "& ", name, "() const"),
                        absl::StrCat("return ", member, ";"));
  if (field.repeated) {
    printer.PrintFunction(absl::StrCat("void add_", name, "(::verbena::Buffer buffer)"),
                          absl::StrCat(member, ".push_back(::std::move(buffer));"));
    printer.PrintFunction(absl::StrCat("void clear_", name, "()"),
                          absl::StrCat(member, ".clear();"));
  } else {
    printer.PrintFunction(absl::StrCat("void set_", name, "(::verbena::Buffer buffer)"),
                          absl::StrCat(member, " = ::std::move(buffer);"));
    printer.PrintFunction(absl::StrCat("void clear_", name, "()"),
                          absl::StrCat(member, " = ::verbena::Buffer();"));
  }
}

}  // namespace

void PrintPlacedMessageClass(const PlacedMessageModel& message, Printer& printer) {
  printer.Print(
      "\n"
      "// $name$, and as Buffers its fields that travel outside of the message.\n"
      "// Copying it copies the message; both then refer to the same memory of the Buffers.\n"
      "class $class$ final {\n"
      " public:\n",
      {{"name", message.name}, {"class", message.cpp_name}});
  printer.Indent();
  printer.Print("// All other fields. Those that travel outside are to stay empty in here.\n");
  printer.PrintFunction(absl::StrCat("const ", message.message_type, "& message() const"),
                        "return verbena_message_;");
  printer.PrintFunction(absl::StrCat(message.message_type, "* mutable_message()"),
                        "return &verbena_message_;");
  for (const PlacedFieldModel& field : message.fields) PrintAccessors(field, printer);
  printer.Print(
      "\n"
      "// Empties the message and lets go of the Buffers.\n"
      "void Clear() {\n"
      "  verbena_message_.Clear();\n");
  for (const PlacedFieldModel& field : message.fields) {
    printer.Print("  clear_$name$();\n", {{"name", field.cpp_name}});
  }
  printer.Print(
      "}\n"
      "\n"
      "// For the runtime.\n"
      "void VerbenaCollect(::verbena::AttachmentList* attachments) const;\n"
      "bool VerbenaPlace(::std::uint32_t field, ::verbena::Buffer buffer);\n");
  printer.Outdent();
  printer.Print(
      "\n"
      " private:\n"
      "  $type$ verbena_message_;\n",
      {{"type", message.message_type}});
  for (const PlacedFieldModel& field : message.fields) {
    printer.Print("  $type$ $member$;\n", {{"type", TypeOf(field)}, {"member", MemberOf(field)}});
  }
  printer.Print("};\n");
}

void PrintPlacedMessageFunctions(const PlacedMessageModel& message, Printer& printer) {
  printer.Print("\n");
  printer.PrintList(absl::StrCat("void ", message.cpp_name, "::VerbenaCollect("),
                    {"::verbena::AttachmentList* attachments"}, ") const {");
  for (const PlacedFieldModel& field : message.fields) {
    const std::string number = absl::StrCat(field.number);
    if (field.repeated) {
      printer.Print(
          "  for (const ::verbena::Buffer& buffer : $member$) {\n"
          "    attachments->push_back({buffer, $number$});\n"
          "  }\n",
          {{"member", MemberOf(field)}, {"number", number}});
    } else {
      printer.Print(
          "  if (!$member$.empty()) {\n"
          "    attachments->push_back({$member$, $number$});\n"
          "  }\n",
          {{"member", MemberOf(field)}, {"number", number}});
    }
  }
  printer.Print("}\n\n");
  printer.PrintList(absl::StrCat("bool ", message.cpp_name, "::VerbenaPlace("),
                    {"::std::uint32_t field", "::verbena::Buffer buffer"}, ") {");
  printer.Print("  switch (field) {\n");
  for (const PlacedFieldModel& field : message.fields) {
    printer.Print(
        "    case $number$:\n"
        "      $function$_$name$(::std::move(buffer));\n"
        "      return true;\n",
        {{"number", absl::StrCat(field.number)},
         {"function", field.repeated ? "add" : "set"},
         {"name", field.cpp_name}});
  }
  printer.Print(
      "    default:\n"
      "      return false;\n"
      "  }\n"
      "}\n");
}

}  // namespace verbena::codegen
