// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/protobuf_front_end.h"

#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/compiler/cpp/names.h"
#include "google/protobuf/descriptor.pb.h"
#include "verbena/codegen/names.h"
#include "verbena/codegen/protobuf_location.h"
#include "verbena/codegen/protobuf_names.h"
#include "verbena/codegen/protobuf_payload.h"
#include "verbena/codegen/service_names.h"

namespace verbena::codegen {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using google::protobuf::SourceLocation;
namespace protoc = google::protobuf::compiler;

StreamingKind StreamingOf(const MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? StreamingKind::kBidirectional
                                     : StreamingKind::kClientStreaming;
  }
  return method.server_streaming() ? StreamingKind::kServerStreaming : StreamingKind::kUnary;
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

// What each of protoc's classes has as a member, so that neither the class nor a nested type can be
// called so.
bool IsMemberOfMessages(const std::string& name) {
  static const auto& members = *new std::set<std::string>{
      "ByteSizeLong",
      "Clear",
      "CopyFrom",
      "DestructorSkippable_",
      "FullMessageName",
      "GetCachedSize",
      "GetClassData",
      "GetDescriptor",
      "GetMetadata",
      "GetReflection",
      "Impl_",
      "InternalArenaConstructable_",
      "InternalSwap",
      "IsInitialized",
      "MergeFrom",
      "New",
      "SetCachedSize",
      "SharedCtor",
      "SharedDtor",
      "Swap",
      "UnsafeArenaSwap",
      "_Internal",
      "default_instance",
      "descriptor",
  };
  return members.contains(name);
}

template <class D>
absl::Status CheckTypeName(const D& type) {
  if (!IsMemberOfMessages(type.name())) return absl::OkStatus();
  return ErrorAt(*type.file(), LocationOf(type),
                 absl::StrCat(type.full_name(), ": \"", type.name(),
                              "\" is also a member of each class that protoc writes, so that its "
                              ".pb.h does not compile; rename the type"));
}

// Of `message` and what is nested in it.
absl::Status CheckTypeNames(const Descriptor& message) {
  if (absl::Status s = CheckTypeName(message); !s.ok()) return s;
  for (int i = 0; i < message.enum_type_count(); ++i) {
    if (absl::Status s = CheckTypeName(*message.enum_type(i)); !s.ok()) return s;
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    if (absl::Status s = CheckTypeNames(*message.nested_type(i)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckTypeNames(const FileDescriptor& file) {
  for (int i = 0; i < file.message_type_count(); ++i) {
    if (absl::Status s = CheckTypeNames(*file.message_type(i)); !s.ok()) return s;
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

absl::Status CheckPlacedMessages(const FileDescriptor& file) {
  for (const Descriptor* message : MessagesWithPayload(file)) {
    const std::string name = protoc::cpp::ClassName(message);
    if (!IsReservedInCpp(name) || name == "assert") continue;
    return ErrorAt(
        file, LocationOf(*message),
        absl::StrCat("message ", message->full_name(), " has fields marked PAYLOAD, and \"", name,
                     "\" is reserved in C++20, and protoc writes it into the "
                     ".pb.h as it is; rename the message"));
  }
  return absl::OkStatus();
}

// `type`, a message or an enum, and the class of a message in a file that it imports, which was
// named without knowing of `type`.
template <class D>
absl::Status CheckNotPlaced(const D& type, const std::map<std::string, const Descriptor*>& placed) {
  const auto found = placed.find(protoc::cpp::ClassName(&type));
  if (found == placed.end()) return absl::OkStatus();
  return ErrorAt(*type.file(), LocationOf(type),
                 absl::StrCat(type.full_name(), " has the name of the class ", found->first,
                              " that is generated for ", found->second->full_name(), " (",
                              found->second->file()->name(),
                              "), which has fields marked PAYLOAD; "
                              "rename one of them"));
}

absl::Status CheckNotPlacedWithNested(const Descriptor& message,
                                      const std::map<std::string, const Descriptor*>& placed) {
  if (absl::Status s = CheckNotPlaced(message, placed); !s.ok()) return s;
  for (int i = 0; i < message.enum_type_count(); ++i) {
    if (absl::Status s = CheckNotPlaced(*message.enum_type(i), placed); !s.ok()) return s;
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    absl::Status s = CheckNotPlacedWithNested(*message.nested_type(i), placed);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckTypesAreNotPlaced(const FileDescriptor& file, PlacedNames& names) {
  const std::map<std::string, const Descriptor*> placed =
      names.InNamespace(file, CppNamespace(file));
  for (int i = 0; i < file.message_type_count(); ++i) {
    absl::Status s = CheckNotPlacedWithNested(*file.message_type(i), placed);
    if (!s.ok()) return s;
  }
  for (int i = 0; i < file.enum_type_count(); ++i) {
    if (absl::Status s = CheckNotPlaced(*file.enum_type(i), placed); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// `d` is declared in no package, so that its name is one of the global namespace.
template <class D>
absl::Status CheckNotANamespace(const D& d, const std::string& cpp_name, bool mocks) {
  static const auto& names = *new std::set<std::string>{"absl", "google", "std", "verbena"};
  if (!names.contains(cpp_name) && !(mocks && cpp_name == "testing")) return absl::OkStatus();
  return ErrorAt(*d.file(), LocationOf(d),
                 absl::StrCat(d.full_name(),
                              " is in no package, and its name in C++ is that of "
                              "namespace ",
                              cpp_name,
                              ", which generated code uses; rename it or "
                              "give the file a package"));
}

// What `file`, and each that it imports, has in the global namespace.
absl::Status CheckNoNamespaces(const FileDescriptor& file, bool mocks,
                               std::set<const FileDescriptor*>& seen) {
  if (!seen.insert(&file).second) return absl::OkStatus();
  for (int i = 0; i < file.dependency_count(); ++i) {
    if (absl::Status s = CheckNoNamespaces(*file.dependency(i), mocks, seen); !s.ok()) return s;
  }
  if (!file.package().empty()) return absl::OkStatus();
  for (int i = 0; i < file.message_type_count(); ++i) {
    const Descriptor& type = *file.message_type(i);
    absl::Status s = CheckNotANamespace(type, protoc::cpp::ClassName(&type), mocks);
    if (!s.ok()) return s;
  }
  for (int i = 0; i < file.enum_type_count(); ++i) {
    const EnumDescriptor& type = *file.enum_type(i);
    absl::Status s = CheckNotANamespace(type, protoc::cpp::ClassName(&type), mocks);
    if (!s.ok()) return s;
    for (int j = 0; j < type.value_count(); ++j) {
      s = CheckNotANamespace(*type.value(j), protoc::cpp::EnumValueName(type.value(j)), mocks);
      if (!s.ok()) return s;
    }
  }
  for (int i = 0; i < file.extension_count(); ++i) {
    const FieldDescriptor& extension = *file.extension(i);
    absl::Status s = CheckNotANamespace(extension, extension.name(), mocks);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// Only where there is anything to generate, as nothing uses the namespaces otherwise.
absl::Status CheckNoNamespaces(const FileDescriptor& file, const GeneratorOptions& options) {
  if (file.service_count() == 0 && MessagesWithPayload(file).empty()) return absl::OkStatus();
  std::set<const FileDescriptor*> seen;
  return CheckNoNamespaces(file, options.mocks && file.service_count() > 0, seen);
}

// ---- The model ------------------------------------------------------------------------------

// "dir/greeter" of "dir/greeter.proto": what outputs are named after, as protoc does.
std::string OutputStem(const FileDescriptor& file) { return protoc::cpp::StripProto(file.name()); }

// `path` with the prefix of generated headers, unless Protobuf brings it along.
std::string HeaderPath(const GeneratorOptions& options, const std::string& path) {
  return absl::StartsWith(path, "google/protobuf/") ? path : IncludePath(options, path);
}

PlacedMessageModel ReadPlacedMessage(const Descriptor& message, PlacedNames& names) {
  PlacedMessageModel model;
  const std::string& package = message.file()->package();
  model.name = message.full_name().substr(package.empty() ? 0 : package.size() + 1);
  model.cpp_name = names.Of(message);
  model.message_type = protoc::cpp::QualifiedClassName(&message);
  std::vector<std::string> field_names;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (!IsPayload(field)) continue;
    field_names.push_back(protoc::cpp::FieldName(&field));
    model.fields.push_back({.cpp_name = "",
                            .comment = CommentOf(LocationOf(field)),
                            .number = static_cast<uint32_t>(field.number()),
                            .repeated = field.is_repeated()});
  }
  field_names = CppFieldNames(field_names);
  for (size_t i = 0; i < field_names.size(); ++i) model.fields[i].cpp_name = field_names[i];
  return model;
}

// The class that stands for `message` in a method, and its codec.
void ReadMethodType(const Descriptor& message, PlacedNames& names, std::string& type,
                    std::vector<std::string>& codec) {
  const bool placed = HasPayloadFields(message);
  type = protoc::cpp::QualifiedClassName(&message);
  if (placed) {
    const std::string cpp_namespace = CppNamespace(*message.file());
    type = absl::StrCat(cpp_namespace.empty() ? "" : "::", cpp_namespace, "::", names.Of(message));
  }
  codec = {absl::StrCat("::verbena::", placed ? "kPlacedProtobufCodec" : "kProtobufCodec", "<",
                        type, ">")};
}

absl::StatusOr<MethodModel> ReadMethod(const MethodDescriptor& method, PlacedNames& placed_names) {
  if (absl::Status s = CheckMessageType(method, *method.input_type()); !s.ok()) return s;
  if (absl::Status s = CheckMessageType(method, *method.output_type()); !s.ok()) return s;
  if (absl::Status s = CheckNoPayloadBelow(method); !s.ok()) return s;
  const SourceLocation location = LocationOf(method);
  MethodModel model;
  model.name = method.name();
  model.full_name = absl::StrCat(method.service()->full_name(), "/", method.name());
  ReadMethodType(*method.input_type(), placed_names, model.request_type, model.request_codec);
  ReadMethodType(*method.output_type(), placed_names, model.response_type, model.response_codec);
  model.comment = CommentOf(location);
  model.streaming = StreamingOf(method);
  model.line = location.start_line + 1;
  model.column = location.start_column + 1;
  return model;
}

absl::StatusOr<ServiceModel> ReadService(const ServiceDescriptor& service,
                                         const GeneratorOptions& options,
                                         PlacedNames& placed_names) {
  ServiceModel model;
  model.name = service.name();
  model.full_name = service.full_name();
  model.cpp_namespace =
      options.cpp_namespace.empty() ? CppNamespace(*service.file()) : options.cpp_namespace;
  const SourceLocation location = LocationOf(service);
  model.comment = CommentOf(location);
  model.line = location.start_line + 1;
  model.column = location.start_column + 1;
  for (int i = 0; i < service.method_count(); ++i) {
    absl::StatusOr<MethodModel> method = ReadMethod(*service.method(i), placed_names);
    if (!method.ok()) return method.status();
    model.methods.push_back(*std::move(method));
  }
  return model;
}

// Of the file itself, which users expect to come with the service, of each type that it names, and
// of the classes around these.
std::vector<std::string> MessageHeaders(const FileDescriptor& file,
                                        const GeneratorOptions& options) {
  std::set<std::string> headers = {HeaderPath(options, OutputStem(file) + ".pb.h")};
  for (int i = 0; i < file.service_count(); ++i) {
    for (int j = 0; j < file.service(i)->method_count(); ++j) {
      const MethodDescriptor& method = *file.service(i)->method(j);
      for (const Descriptor* type : {method.input_type(), method.output_type()}) {
        const std::string stem = OutputStem(*type->file());
        headers.insert(HeaderPath(options, stem + ".pb.h"));
        if (HasPayloadFields(*type) && type->file() != &file) {
          headers.insert(HeaderPath(options, stem + ".verbena.h"));
        }
      }
    }
  }
  return {headers.begin(), headers.end()};
}

}  // namespace

absl::StatusOr<ServiceFile> ReadProtobufFile(const FileDescriptor& file,
                                             const GeneratorOptions& options) {
  if (absl::Status s = CheckPackage(file); !s.ok()) return s;
  if (absl::Status s = CheckNoNamespaces(file, options); !s.ok()) return s;
  if (absl::Status s = CheckNoGenericServices(file); !s.ok()) return s;
  if (absl::Status s = CheckTypeNames(file); !s.ok()) return s;
  if (absl::Status s = CheckPayloadFields(file); !s.ok()) return s;
  if (absl::Status s = CheckPlacedMessages(file); !s.ok()) return s;
  PlacedNames placed_names;
  if (absl::Status s = CheckTypesAreNotPlaced(file, placed_names); !s.ok()) return s;
  ServiceFile model;
  model.generator = "protoc-gen-verbena";
  model.source_path = file.name();
  model.output_stem = OutputStem(file);
  model.header_path = HeaderPath(options, OutputStem(file) + ".verbena.h");
  model.placed_namespace = CppNamespace(file);
  model.message_headers = MessageHeaders(file, options);
  model.codec_header = "verbena/rpc/protobuf_codec.h";
  for (const Descriptor* message : MessagesWithPayload(file)) {
    model.placed_messages.push_back(ReadPlacedMessage(*message, placed_names));
  }
  for (int i = 0; i < file.service_count(); ++i) {
    absl::StatusOr<ServiceModel> service = ReadService(*file.service(i), options, placed_names);
    if (!service.ok()) return service.status();
    model.services.push_back(*std::move(service));
  }
  const auto taken = [&](const std::string& cpp_namespace) {
    std::set<std::string> names = NamesInNamespace(file, cpp_namespace);
    for (const auto& [name, message] : placed_names.InNamespace(file, cpp_namespace)) {
      names.insert(name);
    }
    return names;
  };
  if (absl::Status s = NameServices(taken, model); !s.ok()) return s;
  return model;
}

}  // namespace verbena::codegen
