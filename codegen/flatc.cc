// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/flatc.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace verbena::codegen {
namespace {

namespace fs = std::filesystem;

absl::Status SpawnError(const std::string& program, int error) {
  if (error == ENOENT) {
    return absl::NotFoundError(
        absl::StrCat("flatc, FlatBuffers' compiler, is not there: no program \"", program,
                     "\"; install Debian's package flatbuffers-compiler, or give its path as "
                     "--flatc=PATH"));
  }
  return absl::AbortedError(absl::StrCat("can't run ", program, ": ", std::strerror(error)));
}

absl::Status ExitStatus(const std::string& program, int status) {
  if (WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    if (code == 0) return absl::OkStatus();
    // Where posix_spawnp can't tell before the child runs.
    if (code == 127) return SpawnError(program, ENOENT);
    return absl::AbortedError(absl::StrCat(program, " failed with exit status ", code));
  }
  return absl::AbortedError(absl::StrCat(program, " was ended by signal ", WTERMSIG(status)));
}

}  // namespace

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make() {
  const char* parent = std::getenv("TMPDIR");
  std::string path =
      absl::StrCat(parent == nullptr || *parent == '\0' ? "/tmp" : parent, "/verbena-flatc.XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::AbortedError(absl::StrCat("can't make the folder ", path, ": ",
                                           std::strerror(errno),
                                           "; set TMPDIR to one that can be "
                                           "written to"));
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  std::error_code error;  // What is left is in a temporary folder.
  fs::remove_all(path_, error);
}

absl::StatusOr<std::string> Flatc::BinarySchema(const std::string& path, bool warn) const {
  const absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.status();
  std::vector<std::string> arguments = {
      "--binary", "--schema", "--bfbs-comments", "--bfbs-builtins", "--bfbs-filenames",
      "/",        "-o",       folder->path()};
  if (!warn) arguments.push_back("--no-warnings");
  arguments.push_back(path);
  if (absl::Status s = Run(std::move(arguments)); !s.ok()) return s;
  const std::string output =
      absl::StrCat(folder->path(), "/", fs::path(path).stem().string(), ".bfbs");
  std::ifstream file(output, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return absl::AbortedError(absl::StrCat(program_, " did not write ", output));
  return bytes;
}

absl::Status Flatc::WriteHeader(const std::string& path, const std::string& name,
                                const std::string& folder, const FlatbuffersOptions& options,
                                const std::vector<std::string>& extra) const {
  std::vector<std::string> arguments = {"--cpp", "--filename-suffix", options.filename_suffix,
                                        "--filename-ext", options.filename_ext};
  if (options.keep_prefix) arguments.push_back("--keep-prefix");
  if (!options.generator.include_prefix.empty()) {
    arguments.insert(arguments.end(), {"--include-prefix", options.generator.include_prefix});
  }
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  // flatc takes the last component of the input's path only.
  const std::string below = (fs::path(folder) / fs::path(name).parent_path()).string();
  arguments.insert(arguments.end(), {"-o", below, path});
  return Run(std::move(arguments));
}

absl::Status Flatc::Run(std::vector<std::string> arguments) const {
  std::vector<std::string> all = {program_};
  for (const std::string& folder : folders_) all.insert(all.end(), {"-I", folder});
  all.insert(all.end(), std::make_move_iterator(arguments.begin()),
             std::make_move_iterator(arguments.end()));
  std::vector<char*> argv;
  argv.reserve(all.size() + 1);
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Part of its errors goes to standard output, which is not for them.
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SpawnError(program_, error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return absl::AbortedError(absl::StrCat("waitpid: ", std::strerror(errno)));
  }
  return ExitStatus(program_, status);
}

}  // namespace verbena::codegen
