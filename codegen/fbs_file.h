// SPDX-License-Identifier: Apache-2.0
//
// .fbs files as the FlatBuffers front end gets them. Values; any thread.

#pragma once

#include <map>
#include <string>

namespace verbena::codegen {

// One .fbs file that flatc has read.
struct FbsFile {
  std::string name;  // "dir/monster.fbs": what headers, errors and outputs are named after.
  std::string path;  // Where it is.
  std::string text;
  // Of the file that is read, and of those in FilesOfMethodTypes(); of others it may be empty.
  std::string bfbs;
};

// By what the binary schemas call a file, such as "//dir/monster.fbs".
using FbsFiles = std::map<std::string, FbsFile>;

}  // namespace verbena::codegen
