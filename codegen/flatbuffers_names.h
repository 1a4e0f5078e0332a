// SPDX-License-Identifier: Apache-2.0
//
// The C++ names that flatc 2.0.8 gives to what a .fbs file declares, as its C++ generator writes
// them (src/idl_gen_cpp.cpp). Names of the schema are dotted, "a.b.Monster". Pure functions; any
// thread.

#pragma once

#include <set>
#include <string>
#include <vector>

#include "flatbuffers/reflection_generated.h"

namespace verbena::codegen {

// flatc appends '_' to `name` where a type or a field is declared.
bool IsEscapedByFlatc(const std::string& name);

// "a.b" of "a.b.Monster"; "Monster" of it.
std::string NamespaceOf(const std::string& full_name);
std::string LastName(const std::string& full_name);

// "class_" of the type "a.b.class".
std::string CppLastName(const std::string& full_name);

// "a::b" of "a.b".
std::string CppNamespaceOf(const std::string& dotted);

// "::a::b::class_" of the type "a.b.class".
std::string CppTypeName(const std::string& full_name);

// What flatc's header always declares beside the type `cpp_name`, and in its namespace: for a table
// Monster, MonsterBuilder and CreateMonster.
std::vector<std::string> NamesBesideType(const reflection::Object& object,
                                         const std::string& cpp_name);
std::vector<std::string> NamesBesideType(const reflection::Enum& type, const std::string& cpp_name);

// What flatbuffers/flatbuffers.h declares in its namespace.
const std::set<std::string>& FlatbuffersRuntimeNames();

// What flatc's code for the types in `schema`, its includes among them, brings into the namespace
// `cpp_namespace` ("a::b"): with every option of flatc, so that what Verbena calls a service does
// not depend on these. Also the namespaces in it. In namespace verbena and flatbuffers also the
// names of the runtime of each.
std::set<std::string> FlatbuffersNamesIn(const reflection::Schema& schema,
                                         const std::string& cpp_namespace);

}  // namespace verbena::codegen
