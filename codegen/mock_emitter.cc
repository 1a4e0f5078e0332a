// SPDX-License-Identifier: Apache-2.0
//
// As in emitter.cc, names from outside are written in full. MOCK_METHOD's arguments are types
// without a comma outside of '<' and '>', or it would take the rest for its next argument.

#include "verbena/codegen/mock_emitter.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/codegen/emitter_parts.h"
#include "verbena/codegen/printer.h"

namespace verbena::codegen {
namespace {

// One MOCK_METHOD. The parentheses around `parameters` are part of the first and the last.
void PrintMock(const std::string& result, const std::string& name,
               std::vector<std::string> parameters, Printer& printer) {
  parameters.front() = absl::StrCat("(", parameters.front());
  parameters.back() += ")";
  std::vector<std::string> arguments = {result, name};
  arguments.insert(arguments.end(), parameters.begin(), parameters.end());
  arguments.push_back("(override)");
  printer.PrintList("MOCK_METHOD(", arguments, ");");
}

void PrintMockStub(const ServiceModel& service, Printer& printer) {
  printer.Print(
      "\n"
      "// $class$'s blocking calls. async() is one of $async$ if the test says so.\n"
      "class $mock$ : public $class$::StubInterface {\n"
      " public:\n",
      {{"class", service.cpp_name},
       {"async", service.mock_async_name},
       {"mock", service.mock_stub_name}});
  printer.Indent();
  for (const MethodModel* method : UnaryMethods(service)) {
    PrintMock("::absl::Status", method->cpp_name, BlockingParameters(*method), printer);
  }
  // In full: a method may be called as the service.
  const std::string& outer = service.cpp_namespace;
  PrintMock(
      absl::StrCat(outer.empty() ? "" : "::", outer, "::", service.cpp_name, "::AsyncInterface*"),
      "async", {""}, printer);
  printer.Outdent();
  printer.Print("};\n");
}

void PrintMockAsync(const ServiceModel& service, Printer& printer) {
  printer.Print(
      "\n"
      "// $class$'s calls that do not wait. An action runs `done`, or nobody does.\n"
      "class $mock$ : public $class$::AsyncInterface {\n"
      " public:\n",
      {{"class", service.cpp_name}, {"mock", service.mock_async_name}});
  printer.Indent();
  for (const MethodModel* method : UnaryMethods(service)) {
    PrintMock("void", method->cpp_name, AsyncParameters(*method), printer);
  }
  printer.Outdent();
  printer.Print("};\n");
}

}  // namespace

std::string EmitMockHeader(const ServiceFile& file) {
  Printer printer;
  PrintBanner(file, printer);
  printer.Print("\n#pragma once\n");
  if (file.services.empty()) return printer.text();
  printer.Print("\n#include <gmock/gmock.h>\n\n");
  PrintIncludes({"absl/status/status.h", file.header_path, "verbena/rpc/client_context.h",
                 "verbena/rpc/unary_call.h"},
                printer);
  NamespaceBlocks namespaces(printer);
  for (const ServiceModel& service : file.services) {
    namespaces.Enter(service.cpp_namespace);
    PrintMockStub(service, printer);
    PrintMockAsync(service, printer);
  }
  namespaces.Leave();
  return printer.text();
}

}  // namespace verbena::codegen
