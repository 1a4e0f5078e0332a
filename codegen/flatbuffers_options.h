// SPDX-License-Identifier: Apache-2.0
//
// What a user can ask of verbena-flatc: the same as of the other generator, and how flatc's headers
// are called. Pure functions; any thread.

#pragma once

#include <string>

#include "verbena/codegen/generator_options.h"

namespace verbena::codegen {

struct FlatbuffersOptions {
  GeneratorOptions generator;
  std::string filename_suffix = "_generated";  // flatc's --filename-suffix.
  std::string filename_ext = "h";              // flatc's --filename-ext.
  // Generated headers are included by the path of their .fbs file, as with flatc's --keep-prefix;
  // false: by their last component only, as stock flatc does by default.
  bool keep_prefix = true;
};

// "dir/monster" of "dir/monster.fbs".
std::string FbsStem(const std::string& name);

// How a header called `path` is included: "gen/dir/monster.verbena.h".
std::string FbsIncludePath(const FlatbuffersOptions& options, const std::string& path);

// "dir/monster_generated.h" of "dir/monster.fbs".
std::string FlatcHeader(const FlatbuffersOptions& options, const std::string& name);

}  // namespace verbena::codegen
