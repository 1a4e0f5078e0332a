// SPDX-License-Identifier: Apache-2.0
//
// What flatc 2.0.8 accepts, and its C++ generator then makes headers of that do not compile. Pure
// functions; any thread.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "flatbuffers/reflection_generated.h"
#include "verbena/codegen/fbs_file.h"
#include "verbena/codegen/fbs_scanner.h"

namespace verbena::codegen {

// INVALID_ARGUMENT, with place and remedy, for the first such thing in the file that `schema` calls
// `declaration_file`, users call `name`, and whose text is `text`.
absl::Status CheckFlatcHeaderCompiles(const reflection::Schema& schema,
                                      const std::string& declaration_file, const std::string& name,
                                      const FbsText& text);

// Likewise where the header of file `main` is not seen, or hides one that it includes, as flatc
// gives both one include guard. `files` are `main` and all that it includes.
absl::Status CheckIncludeGuard(const FbsFiles& files, const std::string& main);

}  // namespace verbena::codegen
