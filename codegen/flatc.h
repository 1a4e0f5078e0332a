// SPDX-License-Identifier: Apache-2.0
//
// FlatBuffers' compiler as a child process. What it prints goes to standard error as it is. One
// thread.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/codegen/flatbuffers_options.h"

namespace verbena::codegen {

// A folder of its own in $TMPDIR or /tmp, which goes when the object goes.
class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> Make();

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // Empty: moved from.
};

class Flatc {
 public:
  // `program`: a path, or a name to be looked for in PATH. `folders`: for -I.
  Flatc(std::string program, std::vector<std::string> folders)
      : program_(std::move(program)), folders_(std::move(folders)) {}

  // The binary schema of the file at `path`, with file names as FbsTree::KeyOf has them. With
  // `warn`, flatc warns of what it finds. NOT_FOUND where there is no flatc, with a remedy; ABORTED
  // where it fails, after it has said why.
  absl::StatusOr<std::string> BinarySchema(const std::string& path, bool warn) const;

  // Writes the C++ header of the file at `path`, which is called `name`, below `folder`. `extra`
  // are the user's. Errors as above.
  absl::Status WriteHeader(const std::string& path, const std::string& name,
                           const std::string& folder, const FlatbuffersOptions& options,
                           const std::vector<std::string>& extra) const;

 private:
  absl::Status Run(std::vector<std::string> arguments) const;

  std::string program_;
  std::vector<std::string> folders_;
};

}  // namespace verbena::codegen
