// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/flatc_command_line.h"

#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "verbena/codegen/generator_options.h"

namespace verbena::codegen {
namespace {

constexpr char kUsage[] =
    "verbena-flatc writes Verbena's stubs and services for FlatBuffers schemas.\n"
    "\n"
    "  verbena-flatc -I DIR --verbena_out=DIR [--cpp_out=DIR] [OPTION...] FILE...\n"
    "\n"
    "For dir/x.fbs below a folder of -I it writes DIR/dir/x.verbena.h and DIR/dir/x.verbena.cc.\n"
    "\n"
    "  -I DIR                 A folder that schemas are named relative to, and included from. May "
    "be\n"
    "                         given more than once; without it, the current folder.\n"
    "  --verbena_out=DIR      Where the stubs and services go.\n"
    "  --cpp_out=DIR          Also run flatc --cpp: DIR/dir/x_generated.h.\n"
    "  --flatc=PATH           FlatBuffers' compiler, where it is not in PATH.\n"
    "  --flatc_arg=ARGUMENT   An argument more for flatc --cpp, such as --gen-object-api. May be\n"
    "                         given more than once.\n"
    "\n"
    "How flatc's headers are called, for both outputs:\n"
    "\n"
    "  --filename-suffix=S    Instead of _generated.\n"
    "  --filename-ext=EXT     Instead of h.\n"
    "  --no-keep-prefix       Include headers by the last component of their path only, as flatc "
    "does\n"
    "                         without --keep-prefix.\n"
    "\n"
    "And, as --OPTION or --OPTION=VALUE:\n"
    "\n";

// What this program decides, or what would give other headers than those that are included.
const std::set<std::string>& FlatcArgumentsOfOurs() {
  static const auto& names = *new std::set<std::string>{
      "--binary",
      "--bfbs-filenames",
      "--filename-ext",
      "--filename-suffix",
      "--gen-all",
      "--include-prefix",
      "--keep-prefix",
      "--no-includes",
      "--schema",
      "-I",
      "-b",
      "-o",
  };
  return names;
}

class CommandLineParser {
 public:
  explicit CommandLineParser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  absl::StatusOr<FlatcCommandLine> Parse() {
    while (at_ < arguments_.size() && !result_.help) {
      if (absl::Status s = ParseOne(arguments_[at_++]); !s.ok()) return s;
    }
    if (result_.help) return result_;
    if (result_.inputs.empty()) return Error("no .fbs file is given");
    if (result_.verbena_out.empty() && result_.cpp_out.empty()) {
      return Error("there is nothing to write: give --verbena_out=DIR, --cpp_out=DIR or both");
    }
    if (result_.folders.empty()) result_.folders.push_back(".");
    return result_;
  }

 private:
  static absl::Status Error(const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(what, " (verbena-flatc --help says more)"));
  }

  absl::Status ParseOne(const std::string& argument) {
    if (argument == "-h") {
      result_.help = true;
      return absl::OkStatus();
    }
    if (absl::StartsWith(argument, "-I")) {
      if (argument.size() > 2) return Add(result_.folders, argument.substr(2));
      if (at_ >= arguments_.size()) return Error("-I is without its folder");
      return Add(result_.folders, arguments_[at_++]);
    }
    if (absl::StartsWith(argument, "--")) return ParseOption(argument);
    if (absl::StartsWith(argument, "-")) return Error(absl::StrCat("unknown option ", argument));
    if (!absl::EndsWith(argument, ".fbs")) {
      return Error(absl::StrCat(argument, " is no .fbs file"));
    }
    return Add(result_.inputs, argument);
  }

  static absl::Status Add(std::vector<std::string>& list, const std::string& value) {
    list.push_back(value);
    return absl::OkStatus();
  }

  // "--name=value", "--name value" or "--name", with '-' and '_' alike in the name: it is flatc's
  // options and protoc's that users know.
  absl::Status ParseOption(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string written = argument.substr(0, equals);
    const std::string name = absl::StrReplaceAll(written.substr(2), {{"-", "_"}});
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    if (name == "help") {
      result_.help = true;
      return absl::OkStatus();
    }
    if (name == "no_keep_prefix" || name == "mocks") {
      if (value.has_value()) return Error(absl::StrCat(written, " takes no value"));
      if (name == "mocks") return SetGeneratorOption(name, "", result_.options.generator);
      result_.options.keep_prefix = false;
      return absl::OkStatus();
    }
    if (!IsKnown(name)) return Error(absl::StrCat("unknown option ", written));
    if (!value.has_value()) {
      if (at_ >= arguments_.size()) return Error(absl::StrCat(written, " is without its value"));
      value = arguments_[at_++];
    }
    return Set(name, written, *value);
  }

  static bool IsKnown(const std::string& name) {
    return IsGeneratorOption(name) || name == "verbena_out" || name == "cpp_out" ||
           name == "flatc" || name == "flatc_arg" || name == "filename_suffix" ||
           name == "filename_ext";
  }

  absl::Status Set(const std::string& name, const std::string& written, const std::string& value) {
    if (IsGeneratorOption(name)) return SetGeneratorOption(name, value, result_.options.generator);
    if (name == "filename_suffix") {
      result_.options.filename_suffix = value;  // May be empty.
      return absl::OkStatus();
    }
    if (value.empty()) return Error(absl::StrCat(written, " is without its value"));
    if (name == "flatc_arg") return AddFlatcArgument(value);
    if (name == "filename_ext") {
      if (value.front() == '.') {
        return Error(absl::StrCat(written, "=", value, ": leave out the dot, as for flatc"));
      }
      result_.options.filename_ext = value;
    }
    if (name == "verbena_out") result_.verbena_out = value;
    if (name == "cpp_out") result_.cpp_out = value;
    if (name == "flatc") result_.flatc = value;
    return absl::OkStatus();
  }

  absl::Status AddFlatcArgument(const std::string& argument) {
    if (FlatcArgumentsOfOurs().contains(argument)) {
      return Error(absl::StrCat("--flatc_arg=", argument,
                                ": which headers there are, how they are called and how they are "
                                "included is verbena-flatc's to say; use its own options"));
    }
    return Add(result_.flatc_arguments, argument);
  }

  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
  FlatcCommandLine result_;
};

}  // namespace

absl::StatusOr<FlatcCommandLine> ParseFlatcCommandLine(const std::vector<std::string>& arguments) {
  return CommandLineParser(arguments).Parse();
}

std::string FlatcUsage() { return absl::StrCat(kUsage, kGeneratorOptionHelp); }

}  // namespace verbena::codegen
