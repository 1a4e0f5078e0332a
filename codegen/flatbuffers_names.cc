// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/flatbuffers_names.h"

#include "absl/strings/str_replace.h"
#include "verbena/codegen/names.h"

namespace verbena::codegen {
namespace {

// Reserved in C++ or macros, and flatc's table of keywords lacks them.
const std::set<std::string>& NotEscaped() {
  static const auto& names = *new std::set<std::string>{
      "EOF",   "NULL",  "alloca",   "assert", "char8_t", "consteval", "constinit",
      "errno", "linux", "offsetof", "stderr", "stdin",   "stdout",    "unix",
  };
  return names;
}

// In flatc's table, and no keywords of C++20.
const std::set<std::string>& EscapedToo() {
  static const auto& names = *new std::set<std::string>{
      "atomic_cancel", "atomic_commit", "atomic_noexcept", "import", "module", "synchronized",
  };
  return names;
}

// What an option of flatc adds, or that the table is a root_type.
std::vector<std::string> OptionalNames(const reflection::Object& object, const std::string& name) {
  std::vector<std::string> names = {name + "T", name + "TypeTable"};
  if (object.is_struct()) return names;
  names.insert(names.end(), {"Create" + name + "Direct", "Get" + name, "GetMutable" + name,
                             "GetSizePrefixed" + name, "GetMutableSizePrefixed" + name,
                             name + "Identifier", name + "Extension", name + "BufferHasIdentifier",
                             "SizePrefixed" + name + "BufferHasIdentifier",
                             "Verify" + name + "Buffer", "VerifySizePrefixed" + name + "Buffer",
                             "Finish" + name + "Buffer", "FinishSizePrefixed" + name + "Buffer",
                             "UnPack" + name, "UnPackSizePrefixed" + name});
  return names;
}

std::vector<std::string> OptionalNames(const reflection::Enum& type, const std::string& name) {
  std::vector<std::string> names = {name + "TypeTable", name + "_NONE", name + "_ANY"};
  if (type.is_union()) names.insert(names.end(), {name + "Union", name + "UnionTraits"});
  return names;
}

}  // namespace

bool IsEscapedByFlatc(const std::string& name) {
  return (IsReservedInCpp(name) && !NotEscaped().contains(name)) || EscapedToo().contains(name);
}

std::string NamespaceOf(const std::string& full_name) {
  const size_t dot = full_name.rfind('.');
  return dot == std::string::npos ? "" : full_name.substr(0, dot);
}

std::string LastName(const std::string& full_name) {
  return full_name.substr(full_name.rfind('.') + 1);  // npos + 1 is 0.
}

std::string CppLastName(const std::string& full_name) {
  const std::string name = LastName(full_name);
  return IsEscapedByFlatc(name) ? name + '_' : name;
}

std::string CppNamespaceOf(const std::string& dotted) {
  return absl::StrReplaceAll(dotted, {{".", "::"}});
}

std::string CppTypeName(const std::string& full_name) {
  const std::string cpp_namespace = CppNamespaceOf(NamespaceOf(full_name));
  return (cpp_namespace.empty() ? "::" : "::" + cpp_namespace + "::") + CppLastName(full_name);
}

std::vector<std::string> NamesBesideType(const reflection::Object& object,
                                         const std::string& cpp_name) {
  if (object.is_struct()) return {cpp_name};
  return {cpp_name, cpp_name + "Builder", "Create" + cpp_name};
}

std::vector<std::string> NamesBesideType(const reflection::Enum& type,
                                         const std::string& cpp_name) {
  std::vector<std::string> names = {
      cpp_name,          "EnumValues" + cpp_name, "EnumNames" + cpp_name, "EnumName" + cpp_name,
      cpp_name + "_MIN", cpp_name + "_MAX"};
  for (const reflection::EnumVal* value : *type.values()) {
    names.push_back(cpp_name + "_" + value->name()->str());
  }
  if (type.is_union()) {
    names.insert(names.end(),
                 {cpp_name + "Traits", "Verify" + cpp_name, "Verify" + cpp_name + "Vector"});
  }
  return names;
}

// What flatbuffers/flatbuffers.h 2.0.8 declares in its namespace. As the version is the one whose
// generated code compiles, this need not foresee later ones.
const std::set<std::string>& FlatbuffersRuntimeNames() {
  static const auto& names = *new std::set<std::string>{
      "AlignOf",
      "Allocate",
      "Allocator",
      "Array",
      "BufferHasIdentifier",
      "BufferRef",
      "BufferRefBase",
      "CastToArray",
      "CastToArrayOfEnum",
      "Deallocate",
      "DefaultAllocator",
      "DetachedBuffer",
      "ElementaryType",
      "ElementaryTypeNames",
      "EndianCheck",
      "EndianScalar",
      "EndianSwap",
      "FieldIndexToOffset",
      "FlatBufferBuilder",
      "GetBufferIdentifier",
      "GetBufferStartFromRootPointer",
      "GetCstring",
      "GetMutableRoot",
      "GetMutableSizePrefixedRoot",
      "GetMutableTemporaryPointer",
      "GetPrefixedSize",
      "GetRoot",
      "GetSizePrefixedRoot",
      "GetString",
      "GetStringView",
      "GetTemporaryPointer",
      "IndirectHelper",
      "IsFieldPresent",
      "IsFloatTheSameAs",
      "IsInRange",
      "IsOutRange",
      "IsTheSameAs",
      "LookupEnum",
      "NativeTable",
      "Offset",
      "Optional",
      "PaddingBytes",
      "ReadScalar",
      "ReallocateDownward",
      "Required",
      "SequenceType",
      "String",
      "StringLessThan",
      "Struct",
      "Table",
      "TypeCode",
      "TypeTable",
      "Vector",
      "VectorCast",
      "VectorIterator",
      "VectorLength",
      "VectorOfAny",
      "VectorReverseIterator",
      "Verifier",
      "VerifyAlignmentRequirements",
      "WriteScalar",
      "bool_constant",
      "conditional",
      "data",
      "flatbuffers_version_string",
      "hash_value_t",
      "integral_constant",
      "is_enum",
      "is_floating_point",
      "is_same",
      "is_scalar",
      "is_unsigned",
      "kFileIdentifierLength",
      "largest_scalar_t",
      "make_bytes_span",
      "make_span",
      "make_unsigned",
      "nullopt",
      "nullopt_t",
      "numeric_limits",
      "rehasher_function_t",
      "soffset_t",
      "span",
      "unique_ptr",
      "uoffset_t",
      "vector_downward",
      "voffset_t",
  };
  return names;
}

std::set<std::string> FlatbuffersNamesIn(const reflection::Schema& schema,
                                         const std::string& cpp_namespace) {
  std::set<std::string> names;
  if (cpp_namespace == "verbena") names = RuntimeNames();
  if (cpp_namespace == "flatbuffers") names = FlatbuffersRuntimeNames();
  const auto visit = [&](const auto& type) {
    const std::string type_namespace = CppNamespaceOf(NamespaceOf(type.name()->str()));
    if (type_namespace != cpp_namespace) {
      names.insert(NextComponent(type_namespace, cpp_namespace));
      return;
    }
    const std::string cpp_name = CppLastName(type.name()->str());
    for (const std::string& other : NamesBesideType(type, cpp_name)) names.insert(other);
    for (const std::string& other : OptionalNames(type, cpp_name)) names.insert(other);
  };
  for (const reflection::Object* object : *schema.objects()) visit(*object);
  for (const reflection::Enum* type : *schema.enums()) visit(*type);
  return names;
}

}  // namespace verbena::codegen
