// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/cgroup.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "verbena/tools/doctor/files.h"

namespace verbena::doctor {
namespace {

// Version 1 says "no limit" by the largest number of whole pages.
constexpr uint64_t kVersion1Unlimited = uint64_t{1} << 62;

// "max" or a number.
uint64_t ParseLimit(absl::string_view text) {
  uint64_t value = 0;
  bool limited = absl::SimpleAtoi(text, &value) && value < kVersion1Unlimited;
  return limited ? value : kUnlimited;
}

// The folders from this process's group up to the root, for one controller. In a container the path
// may be one that only the host sees; then the mount's root is what is left.
std::vector<std::string> GroupFolders(const Roots& roots, absl::string_view controller) {
  std::string mount, path;
  const std::string lines = ReadText(roots.proc + "/self/cgroup").value_or("");
  for (absl::string_view line : absl::StrSplit(lines, '\n')) {
    // hierarchy:controllers:path; version 2 has no controllers.
    std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    bool version1 = std::count(controllers.begin(), controllers.end(), controller) > 0;
    if (!version1 && !(parts[1].empty() && mount.empty())) continue;
    mount = roots.sys + "/fs/cgroup";
    if (version1) absl::StrAppend(&mount, "/", controller);
    path = std::string(parts[2]);
    if (version1) break;
  }
  std::vector<std::string> folders;
  if (mount.empty()) return folders;
  while (path.size() > 1) {
    folders.push_back(mount + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

void Tighten(const CgroupRdmaLimit& limit, std::vector<CgroupRdmaLimit>* limits) {
  for (CgroupRdmaLimit& known : *limits) {
    if (known.device != limit.device) continue;
    known.handles_max = std::min(known.handles_max, limit.handles_max);
    known.objects_max = std::min(known.objects_max, limit.objects_max);
    return;
  }
  limits->push_back(limit);
}

}  // namespace

uint64_t ReadCgroupMemoryMax(const Roots& roots) {
  uint64_t smallest = kUnlimited;
  for (const std::string& folder : GroupFolders(roots, "memory")) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      std::optional<std::string> text = ReadText(folder + file);
      if (text.has_value()) smallest = std::min(smallest, ParseLimit(*text));
    }
  }
  return smallest;
}

std::vector<CgroupRdmaLimit> ReadCgroupRdma(const Roots& roots) {
  std::vector<CgroupRdmaLimit> limits;
  for (const std::string& folder : GroupFolders(roots, "rdma")) {
    for (const CgroupRdmaLimit& limit : ParseRdmaMax(ReadText(folder + "/rdma.max").value_or(""))) {
      Tighten(limit, &limits);
    }
  }
  return limits;
}

std::vector<CgroupRdmaLimit> ParseRdmaMax(absl::string_view text) {
  std::vector<CgroupRdmaLimit> limits;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    CgroupRdmaLimit limit;
    limit.device = std::string(words[0]);
    for (absl::string_view word : words) {
      if (absl::ConsumePrefix(&word, "hca_handle=")) limit.handles_max = ParseLimit(word);
      if (absl::ConsumePrefix(&word, "hca_object=")) limit.objects_max = ParseLimit(word);
    }
    if (limit.handles_max == kUnlimited && limit.objects_max == kUnlimited) continue;
    limits.push_back(limit);
  }
  return limits;
}

}  // namespace verbena::doctor
