// SPDX-License-Identifier: Apache-2.0
//
// .fbs files below -I folders: which name each has, and which files it includes, found where flatc
// 2.0.8 finds them. Reads files; any thread.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/codegen/fbs_file.h"

namespace verbena::codegen {

class FbsTree {
 public:
  // The -I folders, in their order.
  explicit FbsTree(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // The path of the input `argument`: a file, or a file below one of the folders. NOT_FOUND, with
  // what was tried.
  absl::StatusOr<std::string> Find(const std::string& argument) const;

  // "dir/monster.fbs" of a path: below the folder that leaves the shortest. INVALID_ARGUMENT, with
  // a remedy, where it is below none.
  absl::StatusOr<std::string> NameOf(const std::string& path) const;

  // The file at `path` and all that it includes, transitively; without binary schemas. One that is
  // below no folder is called as it is found.
  absl::StatusOr<FbsFiles> Read(const std::string& path) const;

  // What binary schemas call the file at `path`, given --bfbs-filenames / : flatc resolves symbolic
  // links.
  static std::string KeyOf(const std::string& path);

 private:
  std::vector<std::string> folders_;
};

}  // namespace verbena::codegen
