// SPDX-License-Identifier: Apache-2.0
//
// The C++ names that protoc and this generator give to what a .proto file declares, and those that
// are taken already. Pure functions, and a cache for one thread.

#pragma once

#include <map>
#include <set>
#include <string>

#include "google/protobuf/descriptor.h"

namespace verbena::codegen {

// "a::b" of package a.b.
std::string CppNamespace(const google::protobuf::FileDescriptor& file);

// What `file` and its imports, transitively, bring into the namespace `cpp_namespace` ("a::b") by
// protoc's code: types, enum values, extensions, and the namespaces in it. In namespace verbena
// also the runtime's names.
std::set<std::string> NamesInNamespace(const google::protobuf::FileDescriptor& file,
                                       const std::string& cpp_namespace);

// The names of the classes around messages with fields that travel outside of them. They follow
// from the message's own file and what that imports, never from the file that uses the message: so
// every file calls the class alike.
class PlacedNames {
 public:
  // "PlacedOuter_Inner" of Outer.Inner. REQUIRES: HasPayloadFields(message).
  const std::string& Of(const google::protobuf::Descriptor& message);

  // All classes in the namespace `cpp_namespace` that are in `file` and its imports, transitively:
  // their names, and the message of each.
  std::map<std::string, const google::protobuf::Descriptor*> InNamespace(
      const google::protobuf::FileDescriptor& file, const std::string& cpp_namespace);

 private:
  using NamesOfMessages = std::map<const google::protobuf::Descriptor*, std::string>;
  const NamesOfMessages& OfFile(const google::protobuf::FileDescriptor& file);

  std::map<const google::protobuf::FileDescriptor*, NamesOfMessages> files_;
};

}  // namespace verbena::codegen
