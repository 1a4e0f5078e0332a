// SPDX-License-Identifier: Apache-2.0
//
// verbena-flatc's command line. Pure functions; any thread.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/codegen/flatbuffers_options.h"

namespace verbena::codegen {

struct FlatcCommandLine {
  bool help = false;                 // Nothing else counts then.
  std::vector<std::string> folders;  // -I; "." where there is none.
  std::vector<std::string> inputs;   // At least one.
  std::string verbena_out;           // At least one of the two is not empty.
  std::string cpp_out;
  std::string flatc = "flatc";
  std::vector<std::string> flatc_arguments;  // The user's, for cpp_out.
  FlatbuffersOptions options;
};

// INVALID_ARGUMENT, with a remedy, where `arguments` (those behind the program's name) are none
// that the program knows.
absl::StatusOr<FlatcCommandLine> ParseFlatcCommandLine(const std::vector<std::string>& arguments);

// What --help prints.
std::string FlatcUsage();

}  // namespace verbena::codegen
