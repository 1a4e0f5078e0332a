// SPDX-License-Identifier: Apache-2.0
//
// What a user can ask of the generators, whatever the IDL. Pure functions; any thread.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace verbena::codegen {

struct GeneratorOptions {
  // Put before the path of each generated header in an #include, as a folder: "gen" makes
  // #include "gen/dir/greeter.verbena.h". Does not apply to Protobuf's own google/protobuf/*.pb.h.
  std::string include_prefix = {};
  // "a::b": where the services go, instead of the namespace that the schema says. Messages and the
  // classes around them stay where they are, and the names on the wire what they are. Empty: the
  // schema's.
  std::string cpp_namespace = {};
  // Also write x_mock.verbena.h, with GoogleMock's mocks of the stubs.
  bool mocks = false;
};

// The names of the options, for usage texts: "include_prefix=<folder>, ...".
extern const char kGeneratorOptionNames[];

// The options and what they do, a line or more each, for usage texts.
extern const char kGeneratorOptionHelp[];

// Whether `key` is one of them.
bool IsGeneratorOption(const std::string& key);

// Sets option `key` to what `value` says. INVALID_ARGUMENT, with a remedy, where that makes no
// sense. REQUIRES: IsGeneratorOption(key).
absl::Status SetGeneratorOption(const std::string& key, const std::string& value,
                                GeneratorOptions& options);

// `path`, a generated header, as #include has it.
std::string IncludePath(const GeneratorOptions& options, const std::string& path);

}  // namespace verbena::codegen
