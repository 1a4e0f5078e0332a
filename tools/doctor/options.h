// SPDX-License-Identifier: Apache-2.0
//
// The command line of doctor. A value; parsing belongs to the start of main().

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/tools/doctor/gid_choice.h"

namespace verbena::doctor {

struct Options {
  bool help = false;
  bool json = false;
  Family family = Family::kAny;
};

// `args` are the arguments after the program's name. Errors: INVALID_ARGUMENT that names the
// argument and what is allowed.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args);

std::string Usage();

}  // namespace verbena::doctor
