// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/options.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gflags/gflags.h"

DEFINE_bool(json, false, "print JSON");
DEFINE_string(family, "any", "any, ipv4 or ipv6: the addresses that connections will use");

namespace verbena::doctor {
namespace {

constexpr std::array kFlags = {"json", "family"};

// gflags' own parser ends the process on an error, and takes any flag of any library.
absl::Status SetFlag(const std::string& argument) {
  const size_t equals = argument.find('=');
  const bool has_value = equals != std::string::npos;
  const std::string name = absl::StartsWith(argument, "--") ? argument.substr(2, equals - 2) : "";
  for (const std::string known : kFlags) {
    if (name != known) continue;
    if (!has_value && name != "json") {
      return absl::InvalidArgumentError(
          absl::StrCat(argument, ": needs a value, as in --", name, "=..."));
    }
    const std::string value = has_value ? argument.substr(equals + 1) : "true";
    if (gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty()) {
      return absl::InvalidArgumentError(absl::StrCat(argument, ": not a value for this option"));
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", argument, "\": no such option; there are --json, --family and --help"));
}

absl::StatusOr<Family> ParseFamily(const std::string& name) {
  if (name == "any") return Family::kAny;
  if (name == "ipv4") return Family::kIpv4;
  if (name == "ipv6") return Family::kIpv6;
  return absl::InvalidArgumentError(
      absl::StrCat("--family=", name, ": must be one of any ipv4 ipv6"));
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args) {
  Options options;
  for (const std::string& argument : args) {
    if (argument == "help" || argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (absl::Status set = SetFlag(argument); !set.ok()) return set;
  }
  absl::StatusOr<Family> family = ParseFamily(FLAGS_family);
  if (!family.ok()) return family.status();
  options.family = *family;
  options.json = FLAGS_json;
  return options;
}

std::string Usage() {
  return R"(doctor: can Verbena use RDMA here, and what stands in its way?

  doctor              devices, host and ranked advice, for people
  doctor --json       the same for programs
  --family=ipv4|ipv6  only addresses of this family count (any)

It changes nothing. Root sees a little more: whether PCI Express relaxed ordering is on.
Exit codes: 0 with at least one usable RDMA device, 1 without, 2 for a command line that makes no
sense.
)";
}

}  // namespace verbena::doctor
