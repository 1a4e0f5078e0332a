// SPDX-License-Identifier: Apache-2.0
//
// protoc's plugin:
//
//   protoc --plugin=protoc-gen-verbena=<this> --cpp_out=gen --verbena_out=gen dir/greeter.proto
//
// writes gen/dir/greeter.verbena.{h,cc} beside protoc's greeter.pb.{h,cc}. Options, as in
// --verbena_out=include_prefix=gen,mocks:gen, are described at GeneratorOptions.

#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/compiler/code_generator.h"
#include "google/protobuf/compiler/plugin.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "verbena/codegen/generator_options.h"
#include "verbena/codegen/outputs.h"
#include "verbena/codegen/protobuf_front_end.h"
#include "verbena/codegen/service_model.h"

namespace verbena::codegen {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::compiler::GeneratorContext;

class VerbenaGenerator : public google::protobuf::compiler::CodeGenerator {
 public:
  uint64_t GetSupportedFeatures() const override { return FEATURE_PROTO3_OPTIONAL; }

  bool Generate(const FileDescriptor* file, const std::string& parameter, GeneratorContext* context,
                std::string* error) const override {
    return GenerateAll({file}, parameter, context, error);
  }

  // Overridden because the default puts the file's name before each error, and here it is part of
  // "file:line:column" already.
  bool GenerateAll(const std::vector<const FileDescriptor*>& files, const std::string& parameter,
                   GeneratorContext* context, std::string* error) const override {
    GeneratorOptions options;
    if (!ParseOptions(parameter, options, error)) return false;
    for (const FileDescriptor* file : files) {
      const absl::StatusOr<ServiceFile> model = ReadProtobufFile(*file, options);
      if (!model.ok()) {
        *error = std::string(model.status().message());
        return false;
      }
      std::cerr << Warnings(*model);  // Which protoc passes on.
      for (const OutputFile& output : EmitAll(*model, options.mocks)) Write(context, output);
    }
    return true;
  }

 private:
  static bool ParseOptions(const std::string& parameter, GeneratorOptions& options,
                           std::string* error) {
    std::vector<std::pair<std::string, std::string>> pairs;
    google::protobuf::compiler::ParseGeneratorParameter(parameter, &pairs);
    for (const auto& [key, value] : pairs) {
      if (!IsGeneratorOption(key)) {
        *error = absl::StrCat("unknown option \"", key, "\" in --verbena_out=", parameter,
                              ":...; the options are: ", kGeneratorOptionNames);
        return false;
      }
      if (absl::Status s = SetGeneratorOption(key, value, options); !s.ok()) {
        *error = std::string(s.message());
        return false;
      }
    }
    return true;
  }

  static void Write(GeneratorContext* context, const OutputFile& output) {
    const std::unique_ptr<google::protobuf::io::ZeroCopyOutputStream> stream(
        context->Open(output.path));
    google::protobuf::io::CodedOutputStream(stream.get()).WriteString(output.text);
  }
};

constexpr char kUsage[] =
    "protoc-gen-verbena is a plugin of protoc, which runs it:\n"
    "\n"
    "  protoc --plugin=protoc-gen-verbena=PATH --cpp_out=DIR --verbena_out=[OPTIONS:]DIR FILE...\n"
    "\n"
    "For dir/x.proto it writes DIR/dir/x.verbena.h and DIR/dir/x.verbena.cc. OPTIONS are "
    "separated\n"
    "by commas; --verbena_opt=OPTIONS is the same, and may contain \"::\".\n"
    "\n";

}  // namespace
}  // namespace verbena::codegen

int main(int argc, char* argv[]) {
  const std::string_view argument = argc > 1 ? argv[1] : "";
  if (argument == "--help" || argument == "-h") {
    std::cout << verbena::codegen::kUsage << verbena::codegen::kGeneratorOptionHelp;
    return 0;
  }
  const verbena::codegen::VerbenaGenerator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
