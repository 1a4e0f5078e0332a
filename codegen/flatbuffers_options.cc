// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/flatbuffers_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace verbena::codegen {

std::string FbsStem(const std::string& name) {
  return std::string(absl::StripSuffix(name, ".fbs"));
}

std::string FbsIncludePath(const FlatbuffersOptions& options, const std::string& path) {
  // npos + 1 is 0.
  return IncludePath(options.generator,
                     options.keep_prefix ? path : path.substr(path.rfind('/') + 1));
}

std::string FlatcHeader(const FlatbuffersOptions& options, const std::string& name) {
  return absl::StrCat(FbsStem(name), options.filename_suffix, ".", options.filename_ext);
}

}  // namespace verbena::codegen
