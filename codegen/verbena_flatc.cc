// SPDX-License-Identifier: Apache-2.0
//
// verbena-flatc: for dir/monster.fbs it writes monster.verbena.{h,cc}, and runs flatc for
// monster_generated.h. FlatcUsage() is its manual.
//
// Exit status: 0; 1 where a schema or the command line has an error, or flatc failed.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "verbena/codegen/fbs_file.h"
#include "verbena/codegen/fbs_tree.h"
#include "verbena/codegen/flatbuffers_front_end.h"
#include "verbena/codegen/flatc.h"
#include "verbena/codegen/flatc_command_line.h"
#include "verbena/codegen/outputs.h"
#include "verbena/codegen/service_model.h"

namespace verbena::codegen {
namespace {

namespace fs = std::filesystem;

struct Input {
  std::string path;  // As it is found.
  std::string name;  // As it is called: "dir/monster.fbs".
};

absl::StatusOr<Input> FindInput(const FbsTree& tree, const std::string& argument) {
  absl::StatusOr<std::string> path = tree.Find(argument);
  if (!path.ok()) return path.status();
  absl::StatusOr<std::string> name = tree.NameOf(*path);
  if (!name.ok()) return name.status();
  return Input{.path = *std::move(path), .name = *std::move(name)};
}

// The model of one file.
absl::StatusOr<ServiceFile> ReadInput(const FbsTree& tree, const Flatc& flatc, const Input& input,
                                      const FlatcCommandLine& command) {
  // What flatc warns of, it says when it writes the header, or now.
  absl::StatusOr<std::string> bfbs = flatc.BinarySchema(input.path, command.cpp_out.empty());
  if (!bfbs.ok()) return bfbs.status();
  const std::string main = FbsTree::KeyOf(input.path);
  const absl::StatusOr<std::vector<std::string>> others = FilesOfMethodTypes(*bfbs, main);
  if (!others.ok()) return others.status();
  absl::StatusOr<FbsFiles> files = tree.Read(input.path);
  if (!files.ok()) return files.status();
  files->at(main).bfbs = *std::move(bfbs);
  for (const std::string& other : *others) {
    const auto found = files->find(other);
    if (found == files->end()) continue;  // Which the front end says.
    // root_type and file_identifier are known of the file only that flatc was asked for.
    bfbs = flatc.BinarySchema(found->second.path, false);
    if (!bfbs.ok()) return bfbs.status();
    found->second.bfbs = *std::move(bfbs);
  }
  return ReadFlatbuffersFile(*files, main, command.options);
}

absl::Status Write(const std::string& folder, const OutputFile& output) {
  const fs::path path = fs::path(folder) / output.path;
  std::error_code error;  // The stream finds it out, too.
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << output.text << std::flush;
  if (file) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("can't write ", path.string(), error ? ": " : "", error ? error.message() : ""));
}

// All is read before anything is written.
absl::Status Run(const FlatcCommandLine& command) {
  const FbsTree tree(command.folders);
  const Flatc flatc(command.flatc, command.folders);
  std::vector<Input> inputs;
  std::vector<OutputFile> outputs;
  for (const std::string& argument : command.inputs) {
    absl::StatusOr<Input> input = FindInput(tree, argument);
    if (!input.ok()) return input.status();
    inputs.push_back(*input);
    if (command.verbena_out.empty()) continue;
    const absl::StatusOr<ServiceFile> model = ReadInput(tree, flatc, *input, command);
    if (!model.ok()) return model.status();
    std::cerr << Warnings(*model);
    for (OutputFile& output : EmitAll(*model, command.options.generator.mocks)) {
      outputs.push_back(std::move(output));
    }
  }
  if (!command.cpp_out.empty()) {
    for (const Input& input : inputs) {
      absl::Status s = flatc.WriteHeader(input.path, input.name, command.cpp_out, command.options,
                                         command.flatc_arguments);
      if (!s.ok()) return s;
    }
  }
  for (const OutputFile& output : outputs) {
    if (absl::Status s = Write(command.verbena_out, output); !s.ok()) return s;
  }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<FlatcCommandLine> command = ParseFlatcCommandLine(arguments);
  if (command.ok() && command->help) {
    std::cout << FlatcUsage();
    return 0;
  }
  const absl::Status status = command.ok() ? Run(*command) : command.status();
  if (status.ok()) return 0;
  // A place in a schema stands first, where editors look for it.
  const bool has_place = absl::IsInvalidArgument(status) && command.ok();
  std::cerr << (has_place ? "" : "verbena-flatc: ") << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace verbena::codegen

int main(int argc, char* argv[]) {
  return verbena::codegen::Main(std::vector<std::string>(argv + 1, argv + argc));
}
