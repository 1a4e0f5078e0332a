// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/protobuf_names.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/compiler/cpp/names.h"
#include "verbena/codegen/names.h"
#include "verbena/codegen/protobuf_payload.h"

namespace verbena::codegen {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FileDescriptor;
namespace protoc = google::protobuf::compiler;

void AddEnum(const EnumDescriptor& type, std::set<std::string>& names) {
  const std::string name = protoc::cpp::ClassName(&type);
  for (const char* suffix :
       {"", "_MIN", "_MAX", "_ARRAYSIZE", "_Name", "_Parse", "_IsValid", "_descriptor"}) {
    names.insert(name + suffix);
  }
  // Constants of an enum that is called as a keyword: struct_MAX of struct, which is struct_.
  const std::string& package = type.file()->package();
  const std::string in_schema = absl::StrReplaceAll(
      type.full_name().substr(package.empty() ? 0 : package.size() + 1), {{".", "_"}});
  for (const char* suffix : {"_MIN", "_MAX", "_ARRAYSIZE"}) names.insert(in_schema + suffix);
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

void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
              std::vector<const FileDescriptor*>& files) {
  if (!seen.insert(&file).second) return;
  files.push_back(&file);
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), seen, files);
}

// `file`, which is the first, and all that it imports, transitively.
std::vector<const FileDescriptor*> WithImports(const FileDescriptor& file) {
  std::set<const FileDescriptor*> seen;
  std::vector<const FileDescriptor*> files;
  AddFiles(file, seen, files);
  return files;
}

// "c" of the package a.b.c for namespace a::b.
std::set<std::string> NamespacesBelow(const FileDescriptor& file,
                                      const std::string& cpp_namespace) {
  std::set<std::string> names;
  for (const FileDescriptor* seen : WithImports(file)) {
    names.insert(NextComponent(CppNamespace(*seen), cpp_namespace));
  }
  return names;
}

}  // namespace

std::string CppNamespace(const FileDescriptor& file) {
  return absl::StrReplaceAll(file.package(), {{".", "::"}});
}

std::set<std::string> NamesInNamespace(const FileDescriptor& file,
                                       const std::string& cpp_namespace) {
  std::set<std::string> names = NamespacesBelow(file, cpp_namespace);
  if (cpp_namespace == "verbena") names.merge(RuntimeNames());
  for (const FileDescriptor* seen : WithImports(file)) {
    if (CppNamespace(*seen) != cpp_namespace) continue;
    for (int i = 0; i < seen->message_type_count(); ++i) {
      // Nested A.B is A_B in C++, which something else may be called, too.
      AddMessage(*seen->message_type(i), names);
    }
    for (int i = 0; i < seen->enum_type_count(); ++i) AddEnum(*seen->enum_type(i), names);
    for (int i = 0; i < seen->extension_count(); ++i) names.insert(seen->extension(i)->name());
  }
  return names;
}

const PlacedNames::NamesOfMessages& PlacedNames::OfFile(const FileDescriptor& file) {
  if (const auto known = files_.find(&file); known != files_.end()) return known->second;
  NamesOfMessages& result = files_[&file];  // Stays where it is when others are added.
  const std::vector<const Descriptor*> messages = MessagesWithPayload(file);
  if (messages.empty()) return result;
  const std::string cpp_namespace = CppNamespace(file);
  std::set<std::string> taken = NamesInNamespace(file, cpp_namespace);
  for (const FileDescriptor* seen : WithImports(file)) {
    if (CppNamespace(*seen) != cpp_namespace) continue;
    // Also those of `file`: what the schema spells so keeps its name.
    for (int i = 0; i < seen->service_count(); ++i) taken.insert(seen->service(i)->name());
    if (seen == &file) continue;
    for (const auto& [message, name] : OfFile(*seen)) taken.insert(name);
  }
  std::vector<std::string> names;
  names.reserve(messages.size());
  for (const Descriptor* message : messages) {
    names.push_back("Placed" + protoc::cpp::ClassName(message));
  }
  names = CppNames(NameKind::kOther, names, taken);
  for (size_t i = 0; i < names.size(); ++i) result[messages[i]] = names[i];
  return result;
}

const std::string& PlacedNames::Of(const Descriptor& message) {
  return OfFile(*message.file()).at(&message);
}

std::map<std::string, const Descriptor*> PlacedNames::InNamespace(
    const FileDescriptor& file, const std::string& cpp_namespace) {
  std::map<std::string, const Descriptor*> result;
  for (const FileDescriptor* seen : WithImports(file)) {
    if (CppNamespace(*seen) != cpp_namespace) continue;
    for (const auto& [message, name] : OfFile(*seen)) result[name] = message;
  }
  return result;
}

}  // namespace verbena::codegen
