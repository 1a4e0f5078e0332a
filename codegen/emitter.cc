// SPDX-License-Identifier: Apache-2.0
//
// Two rules keep the output compiling whatever a schema is called. Every name from outside the
// class is written in full with a leading "::", since a package may be called std or verbena. What
// the class adds beside the user's methods is listed in names.cc, so that a method of the same name
// gives way.

#include "verbena/codegen/emitter.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "verbena/codegen/emitter_parts.h"
#include "verbena/codegen/placed_message_emitter.h"
#include "verbena/codegen/printer.h"

namespace verbena::codegen {
namespace {

// Without parameter names where the body uses none.
std::vector<std::string> ServerParameters(const MethodModel& method, bool named) {
  return {absl::StrCat("::verbena::ServerContext* ", named ? "context" : "/*context*/"),
          absl::StrCat("const ", method.request_type, "* ", named ? "request" : "/*request*/"),
          absl::StrCat(method.response_type, "* ", named ? "response" : "/*response*/")};
}

// Sets them apart from what follows.
void PrintSystemIncludes(const std::set<std::string>& headers, Printer& printer) {
  for (const std::string& header : headers) printer.Print("#include <$h$>\n", {{"h", header}});
  if (!headers.empty()) printer.Print("\n");
}

// Stands apart from the method before.
void PrintMethodComment(const MethodModel& method, Printer& printer) {
  if (method.comment.empty()) return;
  printer.Print("\n");
  printer.PrintComment(method.comment);
}

// ---- The header -----------------------------------------------------------------------------

void PrintAsyncInterface(const ServiceModel& service, Printer& printer) {
  printer.Print(
      "\n"
      "// Calls that do not wait. The context, the request and the response must live until "
      "`done`\n"
      "// has run; it runs once, on the channel's thread.\n"
      "class AsyncInterface {\n"
      " public:\n"
      "  virtual ~AsyncInterface() = default;\n");
  printer.Indent();
  for (const MethodModel* method : UnaryMethods(service)) {
    printer.PrintList(absl::StrCat("virtual void ", method->cpp_name, "("),
                      AsyncParameters(*method), ") = 0;");
  }
  printer.Outdent();
  printer.Print("};\n");
}

void PrintStubInterface(const ServiceModel& service, Printer& printer) {
  printer.Print(
      "\n"
      "// What clients call. A test may put an implementation of its own behind it.\n"
      "class StubInterface {\n"
      " public:\n"
      "  virtual ~StubInterface() = default;\n");
  printer.Indent();
  for (const MethodModel* method : UnaryMethods(service)) {
    PrintMethodComment(*method, printer);
    printer.PrintList(absl::StrCat("virtual ::absl::Status ", method->cpp_name, "("),
                      BlockingParameters(*method), ") = 0;");
  }
  printer.Print("virtual AsyncInterface* async() = 0;\n");
  printer.Outdent();
  printer.Print("};\n");
}

void PrintStub(const ServiceModel& service, Printer& printer) {
  printer.Print(
      "\n"
      "// Sends the calls over a channel. Any thread.\n"
      "class Stub final : public StubInterface, private AsyncInterface {\n"
      " public:\n"
      "  explicit Stub(::std::shared_ptr<::verbena::Channel> channel);\n");
  printer.Indent();
  for (const MethodModel* method : UnaryMethods(service)) {
    printer.PrintList(absl::StrCat("::absl::Status ", method->cpp_name, "("),
                      BlockingParameters(*method), ") override;");
  }
  printer.Print("AsyncInterface* async() override { return this; }\n");
  printer.Outdent();
  printer.Print("\n private:\n");
  printer.Indent();
  for (const MethodModel* method : UnaryMethods(service)) {
    printer.PrintList(absl::StrCat("void ", method->cpp_name, "("), AsyncParameters(*method),
                      ") override;");
  }
  printer.Print("::std::shared_ptr<::verbena::Channel> channel_;\n");
  printer.Outdent();
  printer.Print(
      "};\n"
      "\n"
      "// `channel` must not be null.\n"
      "static ::std::unique_ptr<Stub> NewStub(::std::shared_ptr<::verbena::Channel> channel);\n");
}

void PrintServiceBase(const ServiceModel& service, Printer& printer) {
  printer.Print(
      "\n"
      "// What a server implements. A method that is not overridden answers UNIMPLEMENTED. "
      "Handlers\n"
      "// may run on several threads at once.\n"
      "class Service : public ::verbena::Service {\n"
      " public:\n"
      "  Service();\n");
  printer.Indent();
  for (const MethodModel* method : UnaryMethods(service)) {
    PrintMethodComment(*method, printer);
    printer.PrintList(absl::StrCat("virtual ::absl::Status ", method->cpp_name, "("),
                      ServerParameters(*method, true), ");");
  }
  printer.Outdent();
  printer.Print("};\n");
}

void PrintServiceClass(const ServiceFile& file, const ServiceModel& service, Printer& printer) {
  printer.Print("\n");
  printer.PrintComment(service.comment);
  printer.Print(
      "class $class$ final {\n"
      " public:\n"
      "  static constexpr ::std::string_view service_full_name = \"$full_name$\";\n",
      {{"class", service.cpp_name}, {"full_name", service.full_name}});
  printer.Indent();
  for (const MethodModel& method : service.methods) {
    if (method.streaming == StreamingKind::kUnary) continue;
    printer.Print(
        "\n"
        "// $method$ has no code here: it is a streaming method, and stubs for streams are not\n"
        "// generated yet ($file$:$line$).\n",
        {{"method", method.name}, {"file", file.source_path}, {"line", absl::StrCat(method.line)}});
  }
  PrintAsyncInterface(service, printer);
  PrintStubInterface(service, printer);
  PrintStub(service, printer);
  PrintServiceBase(service, printer);
  printer.Outdent();
  if (!UnaryMethods(service).empty()) printer.Print("\n private:\n  struct VerbenaMethods;\n");
  printer.Print("};\n");
}

// ---- The source -----------------------------------------------------------------------------

void PrintMethodDescriptors(const ServiceModel& service, Printer& printer) {
  const std::vector<const MethodModel*> methods = UnaryMethods(service);
  if (methods.empty()) return;
  printer.Print("\nstruct $class$::VerbenaMethods {\n", {{"class", service.cpp_name}});
  printer.Indent();
  for (const MethodModel* method : methods) {
    std::vector<std::string> arguments = {absl::StrCat("\"", method->full_name, "\"")};
    for (const std::vector<std::string>* codec :
         {&method->request_codec, &method->response_codec}) {
      arguments.push_back(absl::StrCat("&", codec->front()));
      arguments.insert(arguments.end(), codec->begin() + 1, codec->end());
    }
    printer.PrintList(
        absl::StrCat("static constexpr ::verbena::MethodDescriptor ", method->cpp_name, "{"),
        arguments, "};");
  }
  printer.Outdent();
  printer.Print("};\n");
}

void PrintStubMethods(const ServiceModel& service, Printer& printer) {
  printer.Print(
      "\n"
      "$class$::Stub::Stub(::std::shared_ptr<::verbena::Channel> channel)\n"
      "    : channel_(::std::move(channel)) {}\n"
      "\n",
      {{"class", service.cpp_name}});
  printer.PrintList(Substitute("::std::unique_ptr<$class$::Stub> $class$::NewStub(",
                               {{"class", service.cpp_name}}),
                    {"::std::shared_ptr<::verbena::Channel> channel"}, ") {");
  printer.Print(
      "  return ::std::make_unique<Stub>(::std::move(channel));\n"
      "}\n");
  for (const MethodModel* method : UnaryMethods(service)) {
    const std::string descriptor = absl::StrCat("VerbenaMethods::", method->cpp_name);
    const std::string function = absl::StrCat(service.cpp_name, "::Stub::", method->cpp_name, "(");
    printer.Print("\n");
    printer.PrintList(absl::StrCat("::absl::Status ", function), BlockingParameters(*method),
                      ") {");
    printer.Indent();
    printer.PrintList("return ::verbena::CallUnary(",
                      {"*channel_", descriptor, "context", "&request", "response"}, ");");
    printer.Outdent();
    printer.Print("}\n\n");
    printer.PrintList(absl::StrCat("void ", function), AsyncParameters(*method), ") {");
    printer.Indent();
    printer.PrintList(
        "::verbena::StartUnary(",
        {"*channel_", descriptor, "context", "request", "response", "::std::move(done)"}, ");");
    printer.Outdent();
    printer.Print("}\n");
  }
}

void PrintServiceConstructor(const ServiceModel& service, Printer& printer) {
  const std::vector<const MethodModel*> methods = UnaryMethods(service);
  printer.Print("\n$class$::Service::Service() {$empty$\n",
                {{"class", service.cpp_name}, {"empty", methods.empty() ? "}" : ""}});
  if (methods.empty()) return;
  printer.Indent();
  for (const MethodModel* method : methods) {
    printer.Print(
        "AddVerbenaMethod(\n"
        "    &VerbenaMethods::$method$,\n"
        "    [](::verbena::Service* service, ::verbena::ServerContext* context, const void* "
        "request,\n"
        "       void* response) {\n",
        {{"method", method->cpp_name}});
    printer.Indent();
    printer.Indent();
    printer.Indent();
    printer.PrintList(
        absl::StrCat("return static_cast<Service*>(service)->", method->cpp_name, "("),
        {"context", absl::StrCat("static_cast<const ", method->request_type, "*>(request)"),
         absl::StrCat("static_cast<", method->response_type, "*>(response)")},
        ");");
    printer.Outdent();
    printer.Outdent();
    printer.Outdent();
    printer.Print("    });\n");
  }
  printer.Outdent();
  printer.Print("}\n");
}

void PrintServiceMethods(const ServiceModel& service, Printer& printer) {
  PrintServiceConstructor(service, printer);
  for (const MethodModel* method : UnaryMethods(service)) {
    printer.Print("\n");
    printer.PrintList(
        absl::StrCat("::absl::Status ", service.cpp_name, "::Service::", method->cpp_name, "("),
        ServerParameters(*method, false), ") {");
    printer.Indent();
    printer.PrintList("return ::absl::UnimplementedError(",
                      {absl::StrCat("\"", method->full_name, " is not implemented\"")}, ");");
    printer.Outdent();
    printer.Print("}\n");
  }
}

bool IsEmpty(const ServiceFile& file) {
  return file.services.empty() && file.placed_messages.empty();
}

}  // namespace

std::string EmitHeader(const ServiceFile& file) {
  Printer printer;
  PrintBanner(file, printer);
  printer.Print("\n#pragma once\n\n");
  std::set<std::string> system_headers;
  std::set<std::string> headers(file.message_headers.begin(), file.message_headers.end());
  if (!file.services.empty()) {
    system_headers.insert({"memory", "string_view"});
    headers.insert({"absl/status/status.h", "verbena/rpc/channel.h", "verbena/rpc/client_context.h",
                    "verbena/rpc/server_context.h", "verbena/rpc/service.h",
                    "verbena/rpc/unary_call.h"});
  }
  if (!file.placed_messages.empty()) {
    system_headers.insert({"cstdint", "utility", "vector"});
    headers.insert({"verbena/rpc/attachment.h", "verbena/transport/buffer.h"});
  }
  PrintSystemIncludes(system_headers, printer);
  PrintIncludes(headers, printer);
  if (IsEmpty(file)) return printer.text();
  NamespaceBlocks namespaces(printer);
  for (const PlacedMessageModel& message : file.placed_messages) {
    namespaces.Enter(file.placed_namespace);
    PrintPlacedMessageClass(message, printer);
  }
  for (const ServiceModel& service : file.services) {
    namespaces.Enter(service.cpp_namespace);
    PrintServiceClass(file, service, printer);
  }
  namespaces.Leave();
  return printer.text();
}

std::string EmitSource(const ServiceFile& file) {
  Printer printer;
  PrintBanner(file, printer);
  printer.Print("\n");
  PrintIncludes({file.header_path}, printer);
  if (IsEmpty(file)) return printer.text();
  printer.Print("\n");
  if (file.services.empty()) {
    PrintSystemIncludes({"cstdint", "utility"}, printer);
    PrintIncludes({"verbena/rpc/attachment.h", "verbena/transport/buffer.h"}, printer);
  } else {
    PrintSystemIncludes({"memory", "utility"}, printer);
    PrintIncludes({"absl/status/status.h", file.codec_header, "verbena/rpc/method.h"}, printer);
  }
  NamespaceBlocks namespaces(printer);
  for (const PlacedMessageModel& message : file.placed_messages) {
    namespaces.Enter(file.placed_namespace);
    PrintPlacedMessageFunctions(message, printer);
  }
  for (const ServiceModel& service : file.services) {
    namespaces.Enter(service.cpp_namespace);
    PrintMethodDescriptors(service, printer);
    PrintStubMethods(service, printer);
    PrintServiceMethods(service, printer);
  }
  namespaces.Leave();
  return printer.text();
}

}  // namespace verbena::codegen
