// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/files.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "verbena/base/unique_fd.h"

namespace verbena::doctor {

namespace fs = std::filesystem;

std::optional<std::string> ReadText(const std::string& path) {
  // Never waits: a fake or broken tree may have a pipe where a file should be.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return std::nullopt;
  std::string text(size_t{64} << 10, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    ssize_t bytes = read(fd.get(), text.data() + filled, text.size() - filled);
    if (bytes < 0) return std::nullopt;
    if (bytes == 0) break;
    filled += static_cast<size_t>(bytes);
  }
  text.resize(filled);
  return std::string(absl::StripAsciiWhitespace(text));
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::optional<std::string> text = ReadText(path);
  uint64_t value = 0;
  if (!text.has_value()) return std::nullopt;
  bool parsed = absl::StartsWith(*text, "0x") ? absl::SimpleHexAtoi(*text, &value)
                                              : absl::SimpleAtoi(*text, &value);
  return parsed ? std::optional(value) : std::nullopt;
}

std::vector<std::string> ListNames(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return names;
}

std::string LinkTargetName(const std::string& path) {
  std::error_code error;
  fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.filename().string();
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

int OpenErrno(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  return fd.valid() ? 0 : errno;
}

}  // namespace verbena::doctor
