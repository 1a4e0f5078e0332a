// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/generator_options.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "verbena/codegen/names.h"

namespace verbena::codegen {
namespace {

// Why `component` can't be a namespace of the user's; empty when it can.
std::string Problem(const std::string& component) {
  if (component.empty()) return "has an empty part";
  bool identifier = !absl::ascii_isdigit(static_cast<unsigned char>(component.front()));
  for (const char c : component) {
    identifier = identifier && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_');
  }
  if (!identifier) return absl::StrCat("has the part \"", component, "\", which is no identifier");
  // [lex.name] and [namespace.std] of ISO C++20.
  const bool underscores = absl::StrContains(component, "__") ||
                           (component.size() > 1 && component[0] == '_' &&
                            absl::ascii_isupper(static_cast<unsigned char>(component[1])));
  if (IsReservedInCpp(component) || underscores || component == "std") {
    return absl::StrCat("has the part \"", component, "\", which is reserved in C++");
  }
  return "";
}

absl::Status SetNamespace(const std::string& value, GeneratorOptions& options) {
  // Also "a.b", as the schema has it: protoc ends the options of --verbena_out at the first ':'.
  std::string with_colons = absl::StrReplaceAll(value, {{".", "::"}});
  const std::vector<std::string> components = absl::StrSplit(with_colons, "::");
  for (const std::string& component : components) {
    const std::string problem = Problem(component);
    if (problem.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("option namespace=", value, " ", problem,
                     "; give a C++ namespace such as a::b or a.b, or leave the option out for the "
                     "schema's"));
  }
  options.cpp_namespace = std::move(with_colons);
  return absl::OkStatus();
}

absl::Status SetIncludePrefix(const std::string& value, GeneratorOptions& options) {
  if (value.empty() || value.find_first_of("\"\\\n") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("option include_prefix=", value,
                     " is no folder; give one as #include has it, such as gen or gen/api, or leave "
                     "the option out"));
  }
  options.include_prefix = value;
  return absl::OkStatus();
}

absl::Status SetMocks(const std::string& value, GeneratorOptions& options) {
  if (!value.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("option mocks=", value, ": it takes no value; write mocks, or leave it out"));
  }
  options.mocks = true;
  return absl::OkStatus();
}

}  // namespace

const char kGeneratorOptionNames[] = "include_prefix=<folder>, namespace=<a::b>, mocks";

const char kGeneratorOptionHelp[] =
    "  include_prefix=FOLDER  Put FOLDER/ before the generated headers in #include.\n"
    "  namespace=A::B         Put the services into this C++ namespace (A.B is the same) instead "
    "of\n"
    "                         the schema's. Messages stay where they are.\n"
    "  mocks                  Also write x_mock.verbena.h: GoogleMock's mocks of the stubs.\n";

bool IsGeneratorOption(const std::string& key) {
  return key == "include_prefix" || key == "namespace" || key == "mocks";
}

absl::Status SetGeneratorOption(const std::string& key, const std::string& value,
                                GeneratorOptions& options) {
  if (key == "namespace") return SetNamespace(value, options);
  if (key == "include_prefix") return SetIncludePrefix(value, options);
  return SetMocks(value, options);
}

std::string IncludePath(const GeneratorOptions& options, const std::string& path) {
  if (options.include_prefix.empty()) return path;
  return absl::StrCat(options.include_prefix,
                      absl::EndsWith(options.include_prefix, "/") ? "" : "/", path);
}

}  // namespace verbena::codegen
