// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/fbs_tree.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "verbena/codegen/fbs_scanner.h"

namespace verbena::codegen {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string Join(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).lexically_normal().string();
}

// Symbolic links stay as they are.
std::string Absolute(const std::string& path) {
  std::string absolute = fs::absolute(path).lexically_normal().string();
  if (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": can't be read"));
  return text;
}

}  // namespace

absl::StatusOr<std::string> FbsTree::Find(const std::string& argument) const {
  if (IsFile(argument)) return argument;
  for (const std::string& folder : folders_) {
    if (std::string path = Join(folder, argument); IsFile(path)) return path;
  }
  return absl::NotFoundError(absl::StrCat(argument,
                                          ": no such file, neither as it is nor below the folders "
                                          "of -I, which are: ",
                                          absl::StrJoin(folders_, ", ")));
}

absl::StatusOr<std::string> FbsTree::NameOf(const std::string& path) const {
  const std::string absolute = Absolute(path);
  std::string name;
  for (const std::string& folder : folders_) {
    std::string start = Absolute(folder);
    if (start != "/") start += '/';
    if (!absl::StartsWith(absolute, start)) continue;
    if (name.empty() || absolute.size() - start.size() < name.size()) {
      name = absolute.substr(start.size());
    }
  }
  if (!name.empty()) return name;
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is below none of the folders of -I (", absl::StrJoin(folders_, ", "),
      "), so that it is not known what its outputs are called; add -I with one that it is in"));
}

absl::StatusOr<FbsFiles> FbsTree::Read(const std::string& path) const {
  FbsFiles files;
  std::vector<std::string> to_read = {path};
  while (!to_read.empty()) {
    const std::string next = std::move(to_read.back());
    to_read.pop_back();
    const std::string key = KeyOf(next);
    if (files.contains(key)) continue;
    absl::StatusOr<std::string> text = ReadText(next);
    if (!text.ok()) return text.status();
    const absl::StatusOr<std::string> name = NameOf(next);
    // As flatc looks for them: beside the file that includes, then where it is told to.
    std::vector<std::string> folders = {fs::path(next).parent_path().string()};
    folders.insert(folders.end(), folders_.begin(), folders_.end());
    folders.push_back(fs::path(path).parent_path().string());
    for (const std::string& include : ScanFbs(*text).includes) {
      for (const std::string& folder : folders) {
        std::string found = Join(folder, include);
        if (!IsFile(found)) continue;
        to_read.push_back(std::move(found));
        break;  // One that is nowhere is flatc's error.
      }
    }
    files[key] = {
        .name = name.ok() ? *name : next, .path = next, .text = *std::move(text), .bfbs = ""};
  }
  return files;
}

std::string FbsTree::KeyOf(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return absl::StrCat("/", error ? Absolute(path) : real.string());
}

}  // namespace verbena::codegen
