// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/protobuf_front_end.h"

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/compiler/cpp/names.h"
#include "google/protobuf/descriptor.pb.h"
#include "verbena/codegen/names.h"

namespace verbena::codegen {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using google::protobuf::SourceLocation;
namespace protoc = google::protobuf::compiler;

template <class D>
SourceLocation LocationOf(const D& descriptor) {
  SourceLocation location;
  // Counts from 0; -1 is "unknown" once 1 is added.
  if (!descriptor.GetSourceLocation(&location)) location.start_line = location.start_column = -1;
  return location;
}

SourceLocation PackageLocation(const FileDescriptor& file) {
  SourceLocation location;
  if (!file.GetSourceLocation({FileDescriptorProto::kPackageFieldNumber}, &location)) {
    location.start_line = location.start_column = -1;
  }
  return location;
}

absl::Status ErrorAt(const FileDescriptor& file, const SourceLocation& location,
                     const std::string& message) {
  std::string where = file.name();
  if (location.start_line >= 0) {
    absl::StrAppend(&where, ":", location.start_line + 1, ":", location.start_column + 1);
  }
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", message));
}

std::string CommentOf(const SourceLocation& location) {
  return location.leading_comments.empty() ? location.trailing_comments : location.leading_comments;
}

StreamingKind StreamingOf(const MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? StreamingKind::kBidirectional
                                     : StreamingKind::kClientStreaming;
  }
  return method.server_streaming() ? StreamingKind::kServerStreaming : StreamingKind::kUnary;
}

// ---- Names that protoc's C++ has already taken ------------------------------------------------

void AddEnum(const EnumDescriptor& type, std::set<std::string>& names) {
  const std::string name = protoc::cpp::ClassName(&type);
  for (const char* suffix :
       {"", "_MIN", "_MAX", "_ARRAYSIZE", "_Name", "_Parse", "_IsValid", "_descriptor"}) {
    names.insert(name + suffix);
  }
  // Values of a nested enum are prefixed with the name of the message.
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string value = protoc::cpp::EnumValueName(type.value(i));
    names.insert(type.containing_type() == nullptr
                     ? value
                     : absl::StrCat(protoc::cpp::ClassName(type.containing_type()), "_", value));
  }
}

void AddMessage(const Descriptor& type, std::set<std::string>& names) {
  const std::string name = protoc::cpp::ClassName(&type);
  names.insert(name);
  names.insert(name + "DefaultTypeInternal");
  for (int i = 0; i < type.nested_type_count(); ++i) AddMessage(*type.nested_type(i), names);
  for (int i = 0; i < type.enum_type_count(); ++i) AddEnum(*type.enum_type(i), names);
}

// Of the types in `package` that `file` sees. Nested A.B is A_B in C++, which a service may be
// called, too.
void AddTypes(const FileDescriptor& file, const std::string& package,
              std::set<const FileDescriptor*>& seen, std::set<std::string>& names) {
  if (!seen.insert(&file).second) return;
  if (file.package() == package) {
    for (int i = 0; i < file.message_type_count(); ++i) AddMessage(*file.message_type(i), names);
    for (int i = 0; i < file.enum_type_count(); ++i) AddEnum(*file.enum_type(i), names);
  }
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddTypes(*file.dependency(i), package, seen, names);
  }
}

// ---- What can't be compiled, whatever this generator does -------------------------------------

absl::Status CheckPackage(const FileDescriptor& file) {
  const std::vector<std::string> components = absl::StrSplit(file.package(), '.');
  for (size_t i = 0; i < components.size(); ++i) {
    const std::string& component = components[i];
    if (IsReservedInCpp(component) && component != "assert") {  // A macro only before '('.
      return ErrorAt(file, PackageLocation(file),
                     absl::StrCat("package \"", file.package(), "\" contains \"", component,
                                  "\", which is reserved in C++, and protoc writes it into the "
                                  ".pb.h as it is; rename the package"));
    }
    if (component == "std" && i > 0) {
      return ErrorAt(file, PackageLocation(file),
                     absl::StrCat("package \"", file.package(),
                                  "\" contains \"std\", which hides "
                                  "the standard library from protoc's .pb.h; rename the package"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNoGenericServices(const FileDescriptor& file) {
  if (file.service_count() == 0 || !file.options().cc_generic_services()) return absl::OkStatus();
  return ErrorAt(
      file, LocationOf(*file.service(0)),
      absl::StrCat("option cc_generic_services makes protoc write a class ",
                   file.service(0)->name(), ", which is the name of Verbena's; remove the option"));
}

absl::Status CheckMessageType(const MethodDescriptor& method, const Descriptor& type) {
  const std::string name = protoc::cpp::ClassName(&type);
  if (!IsReservedInCpp(name) || name == "assert") return absl::OkStatus();
  return ErrorAt(
      *method.file(), LocationOf(method),
      absl::StrCat(method.full_name(), " uses message ", type.full_name(), ", and \"", name,
                   "\" is reserved in C++20, and protoc writes it into the .pb.h "
                   "as it is; rename the message"));
}

// ---- The model ------------------------------------------------------------------------------

// `path` with the prefix of generated headers, unless Protobuf brings it along.
std::string HeaderPath(const ProtobufFrontEndOptions& options, std::string path) {
  if (options.include_prefix.empty() || absl::StartsWith(path, "google/protobuf/")) return path;
  const bool slash = options.include_prefix.back() == '/';
  return absl::StrCat(options.include_prefix, slash ? "" : "/", path);
}

absl::StatusOr<MethodModel> ReadMethod(const MethodDescriptor& method) {
  if (absl::Status s = CheckMessageType(method, *method.input_type()); !s.ok()) return s;
  if (absl::Status s = CheckMessageType(method, *method.output_type()); !s.ok()) return s;
  const SourceLocation location = LocationOf(method);
  MethodModel model;
  model.name = method.name();
  model.full_name = absl::StrCat(method.service()->full_name(), "/", method.name());
  model.request_type = protoc::cpp::QualifiedClassName(method.input_type());
  model.response_type = protoc::cpp::QualifiedClassName(method.output_type());
  model.comment = CommentOf(location);
  model.streaming = StreamingOf(method);
  model.line = location.start_line + 1;
  model.column = location.start_column + 1;
  return model;
}

absl::StatusOr<ServiceModel> ReadService(const ServiceDescriptor& service) {
  ServiceModel model;
  model.name = service.name();
  model.full_name = service.full_name();
  model.comment = CommentOf(LocationOf(service));
  std::vector<std::string> names;
  for (int i = 0; i < service.method_count(); ++i) {
    absl::StatusOr<MethodModel> method = ReadMethod(*service.method(i));
    if (!method.ok()) return method.status();
    names.push_back(method->name);
    model.methods.push_back(*std::move(method));
  }
  const std::vector<std::string> cpp_names = CppNames(NameKind::kMethod, names, {});
  for (size_t i = 0; i < cpp_names.size(); ++i) model.methods[i].cpp_name = cpp_names[i];
  return model;
}

void NameServices(const FileDescriptor& file, ServiceFile& model) {
  std::set<std::string> taken;
  std::set<const FileDescriptor*> seen;
  AddTypes(file, file.package(), seen, taken);
  if (file.package() == "verbena") taken.merge(RuntimeNames());
  std::vector<std::string> names;
  for (const ServiceModel& service : model.services) names.push_back(service.name);
  const std::vector<std::string> cpp_names = CppNames(NameKind::kService, names, taken);
  for (size_t i = 0; i < cpp_names.size(); ++i) model.services[i].cpp_name = cpp_names[i];
}

// Of the file itself, which users expect to come with the service, and of each type it names.
std::vector<std::string> MessageHeaders(const FileDescriptor& file,
                                        const ProtobufFrontEndOptions& options) {
  std::set<std::string> headers = {HeaderPath(options, OutputStem(file) + ".pb.h")};
  for (int i = 0; i < file.service_count(); ++i) {
    for (int j = 0; j < file.service(i)->method_count(); ++j) {
      const MethodDescriptor& method = *file.service(i)->method(j);
      for (const Descriptor* type : {method.input_type(), method.output_type()}) {
        headers.insert(HeaderPath(options, OutputStem(*type->file()) + ".pb.h"));
      }
    }
  }
  return {headers.begin(), headers.end()};
}

}  // namespace

std::string OutputStem(const FileDescriptor& file) { return protoc::cpp::StripProto(file.name()); }

absl::StatusOr<ServiceFile> ReadProtobufFile(const FileDescriptor& file,
                                             const ProtobufFrontEndOptions& options) {
  if (absl::Status s = CheckPackage(file); !s.ok()) return s;
  if (absl::Status s = CheckNoGenericServices(file); !s.ok()) return s;
  ServiceFile model;
  model.source_path = file.name();
  model.header_path = HeaderPath(options, OutputStem(file) + ".verbena.h");
  model.cpp_namespace = absl::StrReplaceAll(file.package(), {{".", "::"}});
  model.message_headers = MessageHeaders(file, options);
  model.codec_template = "::verbena::kProtobufCodec";
  model.codec_header = "verbena/rpc/protobuf_codec.h";
  for (int i = 0; i < file.service_count(); ++i) {
    absl::StatusOr<ServiceModel> service = ReadService(*file.service(i));
    if (!service.ok()) return service.status();
    model.services.push_back(*std::move(service));
  }
  NameServices(file, model);
  return model;
}

}  // namespace verbena::codegen
