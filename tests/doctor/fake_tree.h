// SPDX-License-Identifier: Apache-2.0
//
// A made-up /sys, /proc and /dev in a folder of its own, removed at the end.

#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "verbena/tools/doctor/roots.h"

namespace verbena::doctor {

class FakeTree {
 public:
  FakeTree() {
    const char* base = getenv("TEST_TMPDIR");
    root_ = std::string(base != nullptr ? base : "/tmp") + "/doctor.XXXXXX";
    if (mkdtemp(root_.data()) == nullptr) abort();
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  Roots roots() const { return {root_ + "/sys", root_ + "/proc", root_ + "/dev"}; }
  std::string Path(const std::string& path) const { return root_ + "/" + path; }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(Path(path)).parent_path());
    std::ofstream(Path(path)) << text;
  }
  void Link(const std::string& path, const std::string& target) {
    std::filesystem::create_directories(std::filesystem::path(Path(path)).parent_path());
    std::filesystem::create_symlink(target, Path(path));
  }

 private:
  std::string root_;
};

}  // namespace verbena::doctor
