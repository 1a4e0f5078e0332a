// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/outputs.h"

#include "absl/strings/str_cat.h"
#include "verbena/codegen/emitter.h"
#include "verbena/codegen/mock_emitter.h"

namespace verbena::codegen {

std::vector<OutputFile> EmitAll(const ServiceFile& file, bool mocks) {
  std::vector<OutputFile> files = {
      {file.output_stem + ".verbena.h", EmitHeader(file)},
      {file.output_stem + ".verbena.cc", EmitSource(file)},
  };
  if (mocks) files.push_back({file.output_stem + "_mock.verbena.h", EmitMockHeader(file)});
  return files;
}

std::string Warnings(const ServiceFile& file) {
  std::string text;
  for (const ServiceModel& service : file.services) {
    for (const MethodModel& method : service.methods) {
      if (method.streaming == StreamingKind::kUnary) continue;
      absl::StrAppend(&text, file.source_path, ":", method.line, ":", method.column,
                      ": warning: ", service.full_name, ".", method.name,
                      " is a streaming method; stubs for streams are not generated yet, so it is "
                      "left out\n");
    }
  }
  return text;
}

}  // namespace verbena::codegen
