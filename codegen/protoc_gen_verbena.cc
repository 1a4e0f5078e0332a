// SPDX-License-Identifier: Apache-2.0
//
// protoc's plugin:
//
//   protoc --plugin=protoc-gen-verbena=<this> --cpp_out=gen --verbena_out=gen dir/greeter.proto
//
// writes gen/dir/greeter.verbena.{h,cc} beside protoc's greeter.pb.{h,cc}. Options, as in
// --verbena_out=include_prefix=gen:gen, are described at ProtobufFrontEndOptions.

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/compiler/code_generator.h"
#include "google/protobuf/compiler/plugin.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "verbena/codegen/emitter.h"
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
    ProtobufFrontEndOptions options;
    if (!ParseOptions(parameter, options, error)) return false;
    for (const FileDescriptor* file : files) {
      const absl::StatusOr<ServiceFile> model = ReadProtobufFile(*file, options);
      if (!model.ok()) {
        *error = std::string(model.status().message());
        return false;
      }
      WarnOfStreams(*model);
      Write(context, OutputStem(*file) + ".verbena.h", EmitHeader(*model));
      Write(context, OutputStem(*file) + ".verbena.cc", EmitSource(*model));
    }
    return true;
  }

 private:
  static bool ParseOptions(const std::string& parameter, ProtobufFrontEndOptions& options,
                           std::string* error) {
    std::vector<std::pair<std::string, std::string>> pairs;
    google::protobuf::compiler::ParseGeneratorParameter(parameter, &pairs);
    for (const auto& [key, value] : pairs) {
      if (key != "include_prefix") {
        *error = absl::StrCat("unknown option \"", key, "\" in --verbena_out=", parameter,
                              ":...; the options are: include_prefix=<folder>");
        return false;
      }
      options.include_prefix = value;
    }
    return true;
  }

  // protoc passes a plugin's stderr on.
  static void WarnOfStreams(const ServiceFile& file) {
    for (const ServiceModel& service : file.services) {
      for (const MethodModel& method : service.methods) {
        if (method.streaming == StreamingKind::kUnary) continue;
        std::cerr << file.source_path << ":" << method.line << ":" << method.column
                  << ": warning: " << service.full_name << "." << method.name
                  << " is a streaming method; stubs for streams are not generated yet, so it is "
                     "left out\n";
      }
    }
  }

  static void Write(GeneratorContext* context, const std::string& path, const std::string& text) {
    const std::unique_ptr<google::protobuf::io::ZeroCopyOutputStream> stream(context->Open(path));
    google::protobuf::io::CodedOutputStream(stream.get()).WriteString(text);
  }
};

}  // namespace
}  // namespace verbena::codegen

int main(int argc, char* argv[]) {
  const verbena::codegen::VerbenaGenerator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
