// SPDX-License-Identifier: Apache-2.0
//
// FlatBuffers' front end: the binary schema (.bfbs) that flatc writes of a .fbs file becomes a
// ServiceFile. Pure; any thread.
//
// flatc is to be run with -b --schema --bfbs-comments --bfbs-builtins --bfbs-filenames.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/codegen/fbs_file.h"
#include "verbena/codegen/flatbuffers_options.h"
#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

// Which other files declare the requests and responses of the services in file `main`, whose binary
// schema is `bfbs`. INTERNAL where that is no such schema.
absl::StatusOr<std::vector<std::string>> FilesOfMethodTypes(const std::string& bfbs,
                                                            const std::string& main);

// Reads `files.at(main)`. INVALID_ARGUMENT where no C++ can be generated that compiles: the message
// has the form "dir/monster.fbs:line:column: what is wrong; what to do". INTERNAL where a binary
// schema does not verify, or names a file that is not in `files`.
absl::StatusOr<ServiceFile> ReadFlatbuffersFile(const FbsFiles& files, const std::string& main,
                                                const FlatbuffersOptions& options);

}  // namespace verbena::codegen
