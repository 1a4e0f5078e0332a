// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/flatbuffers_check.h"

#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "verbena/codegen/flatbuffers_names.h"
#include "verbena/codegen/flatbuffers_options.h"
#include "verbena/codegen/names.h"
#include "verbena/codegen/service_names.h"

namespace verbena::codegen {
namespace {

// Members of flatbuffers::Table, and names in the functions that flatc writes beside a table: a
// field of that name hides them.
bool IsMemberOfTables(const std::string& name) {
  static const auto& names = *new std::set<std::string>{
      "Builder",
      "CheckField",
      "GetAddressOf",
      "GetField",
      "GetOptional",
      "GetOptionalFieldOffset",
      "GetPointer",
      "GetStruct",
      "GetVTable",
      "SetField",
      "SetPointer",
      "VerifyField",
      "VerifyFieldRequired",
      "VerifyOffset",
      "VerifyOffsetRequired",
      "VerifyTableStart",
      "_fbb",
      "builder_",
      "fbb_",
      "verifier",
  };
  return names.contains(name);
}

class Check {
 public:
  Check(const reflection::Schema& schema, const std::string& declaration_file,
        const std::string& name, const FbsText& text)
      : schema_(schema), declaration_file_(declaration_file), name_(name), text_(text) {
    for (const reflection::Object* object : *schema.objects()) AddType(*object);
    for (const reflection::Enum* type : *schema.enums()) AddType(*type);
  }

  absl::Status Run() {
    for (const FbsNamespace& found : text_.namespaces) {
      if (absl::Status s = Namespace(found); !s.ok()) return s;
    }
    absl::Status s = Literal(schema_.file_ident(), "file_identifier", text_.file_identifier);
    if (!s.ok()) return s;
    s = Literal(schema_.file_ext(), "file_extension", text_.file_extension);
    if (!s.ok()) return s;
    for (const reflection::Object* object : *schema_.objects()) {
      if (!IsHere(*object)) continue;
      if (absl::Status s = TypeName(*object); !s.ok()) return s;
      for (const reflection::Field* field : *object->fields()) {
        if (absl::Status s = Field(*object, *field); !s.ok()) return s;
      }
    }
    for (const reflection::Enum* type : *schema_.enums()) {
      if (!IsHere(*type)) continue;
      if (absl::Status s = TypeName(*type); !s.ok()) return s;
      if (absl::Status s = Values(*type); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  template <class T>
  bool IsHere(const T& type) const {
    return type.declaration_file() != nullptr &&
           type.declaration_file()->str() == declaration_file_;
  }

  template <class T>
  void AddType(const T& type) {
    const std::string full_name = type.name()->str();
    scopes_.insert(full_name);
    for (std::string n = NamespaceOf(full_name); !n.empty(); n = NamespaceOf(n)) scopes_.insert(n);
    for (const std::string& other : NamesBesideType(type, CppLastName(full_name))) {
      beside_types_.emplace(CppNamespaceOf(NamespaceOf(full_name)) + "::" + other, full_name);
    }
  }

  absl::Status Error(const FbsLocation& at, const std::string& problem) const {
    return absl::InvalidArgumentError(WithPlace(name_, at.line, at.column, problem));
  }

  absl::Status ErrorAt(const std::string& declaration, const std::string& problem) const {
    const auto found = text_.declarations.find(declaration);
    return Error(found == text_.declarations.end() ? FbsLocation() : found->second, problem);
  }

  absl::Status Namespace(const FbsNamespace& found) const {
    for (size_t i = 0; i < found.components.size(); ++i) {
      const std::string& component = found.components[i];
      if (IsReservedInCpp(component)) {
        return Error(found.location,
                     absl::StrCat("the namespace contains \"", component,
                                  "\", which is reserved in C++, and flatc writes it into its "
                                  "header as it is; rename the namespace"));
      }
      if (i > 0 && (component == "std" || component == "flatbuffers")) {
        return Error(found.location,
                     absl::StrCat("the namespace contains \"", component,
                                  "\" below its top, which hides namespace ", component,
                                  " from flatc's header; rename the namespace"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Literal(const flatbuffers::String* value, const std::string& keyword,
                       const FbsLocation& location) const {
    if (value == nullptr) return absl::OkStatus();
    for (const char c : value->str()) {
      if (c != '"' && c != '\\' && !absl::ascii_iscntrl(static_cast<unsigned char>(c))) continue;
      return Error(location, absl::StrCat(keyword, " contains \"", absl::CEscape({&c, 1}),
                                          "\", which flatc writes into its header as it is, "
                                          "between quotes; choose another one"));
    }
    return absl::OkStatus();
  }

  template <class T>
  absl::Status TypeName(const T& type) const {
    const std::string full_name = type.name()->str();
    const std::string name = LastName(full_name);
    if (IsReservedInCpp(name) && !IsEscapedByFlatc(name)) {
      return ErrorAt(full_name, absl::StrCat(full_name, ": \"", name,
                                             "\" is reserved in C++, and flatc writes it into its "
                                             "header as it is; rename the type"));
    }
    if (name == "std" || name == "flatbuffers") {
      return ErrorAt(full_name, absl::StrCat(full_name, ": a type \"", name, "\" hides namespace ",
                                             name, " from flatc's header; rename the type"));
    }
    const std::string cpp_namespace = CppNamespaceOf(NamespaceOf(full_name));
    if (cpp_namespace == "flatbuffers" && FlatbuffersRuntimeNames().contains(name)) {
      return ErrorAt(full_name, absl::StrCat(full_name,
                                             " is what FlatBuffers' own headers declare in this "
                                             "namespace; rename the type or the namespace"));
    }
    const std::string cpp_name = CppLastName(full_name);
    const auto other = beside_types_.find(cpp_namespace + "::" + cpp_name);
    if (other != beside_types_.end() && other->second != full_name) {
      return ErrorAt(full_name,
                     absl::StrCat(full_name, ": flatc's header declares ", cpp_name, " for ",
                                  other->second, ", too; rename one of the types"));
    }
    return absl::OkStatus();
  }

  absl::Status Field(const reflection::Object& object, const reflection::Field& field) const {
    const std::string name = field.name()->str();
    const std::string full_name = absl::StrCat(object.name()->str(), ".", name);
    if (IsReservedInCpp(name) && !IsEscapedByFlatc(name)) {
      return ErrorAt(full_name, absl::StrCat(full_name, ": \"", name,
                                             "\" is reserved in C++, and flatc writes it into its "
                                             "header as it is; rename the field"));
    }
    if (!object.is_struct() && IsMemberOfTables(name)) {
      return ErrorAt(full_name, absl::StrCat(full_name, ": \"", name,
                                             "\" is also what flatc's header calls a part of every "
                                             "table; rename the field"));
    }
    if (field.padding() > 15) {
      return ErrorAt(full_name,
                     absl::StrCat(full_name, " is followed by ", field.padding(),
                                  " bytes of padding, and flatc 2.0.8 aborts where these are more "
                                  "than 15; put fields of the struct there"));
    }
    const std::string type = TypeOf(*field.type());
    return type.empty() ? absl::OkStatus()
                        : Reference(NamespaceOf(object.name()->str()), type, full_name);
  }

  absl::Status Values(const reflection::Enum& type) const {
    const std::string full_name = type.name()->str();
    const bool bit_flags =
        type.attributes() != nullptr && type.attributes()->LookupByKey("bit_flags") != nullptr;
    for (const reflection::EnumVal* value : *type.values()) {
      const std::string name = value->name()->str();
      const std::string value_name = absl::StrCat(full_name, ".", name);
      if (!bit_flags && (name == "MIN" || name == "MAX")) {
        return ErrorAt(value_name, absl::StrCat(value_name, ": flatc's header gives every enum a ",
                                                name, " of its own; rename the value"));
      }
      if (value->union_type() == nullptr) continue;
      const std::string member = TypeOf(*value->union_type());
      if (member.empty()) continue;
      // A member stands in the union as "ns_Type" or as what the schema calls it.
      absl::Status s = Reference(NamespaceOf(full_name), member, full_name);
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // The type that the user has declared and `type` is made of; empty where there is none.
  std::string TypeOf(const reflection::Type& type) const {
    if (type.index() < 0) return "";
    const bool many = type.base_type() == reflection::Vector ||  //
                      type.base_type() == reflection::Array;
    const auto index = static_cast<uint32_t>(type.index());
    return (many ? type.element() : type.base_type()) == reflection::Obj
               ? schema_.objects()->Get(index)->name()->str()
               : schema_.enums()->Get(index)->name()->str();
  }

  // flatc writes a::b::Type where a field or a union is made of it: without a leading "::", and
  // without the '_' that the type's declaration has.
  absl::Status Reference(const std::string& from, const std::string& type,
                         const std::string& where) const {
    if (IsEscapedByFlatc(LastName(type))) {
      return ErrorAt(where, absl::StrCat(where, " is made of ", type, ", and \"", LastName(type),
                                         "\" is reserved in C++, and flatc writes it as it is "
                                         "here; rename the type"));
    }
    const std::string first = type.substr(0, type.find('.'));
    for (std::string scope = from; !scope.empty(); scope = NamespaceOf(scope)) {
      const std::string hiding = absl::StrCat(scope, ".", first);
      if (!scopes_.contains(hiding) || type == hiding) continue;
      return ErrorAt(where, absl::StrCat(where, " is made of ", type,
                                         ", which flatc writes without a "
                                         "leading \"::\", so that C++ finds ",
                                         hiding, " instead of ", first, "; rename one of them"));
    }
    return absl::OkStatus();
  }

  const reflection::Schema& schema_;
  const std::string& declaration_file_;
  const std::string& name_;
  const FbsText& text_;
  std::set<std::string> scopes_;                     // Full names of all types and namespaces.
  std::map<std::string, std::string> beside_types_;  // "a::b::MonsterBuilder" -> "a.b.Monster".
};

// FLATBUFFERS_GENERATED_MONSTER_A_B_H_ without what is always the same: the file's name, without
// its folder, and the namespace at its end.
std::string IncludeGuard(const FbsFile& file) {
  std::string guard;
  const std::string stem = FbsStem(file.name.substr(file.name.rfind('/') + 1));  // npos + 1 is 0.
  for (const char c : stem) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) guard += c;
  }
  const FbsText text = ScanFbs(file.text);
  if (!text.namespaces.empty()) {
    for (const std::string& component : text.namespaces.back().components) {
      absl::StrAppend(&guard, "_", component);
    }
  }
  return absl::AsciiStrToUpper(guard);
}

}  // namespace

absl::Status CheckIncludeGuard(const FbsFiles& files, const std::string& main) {
  const FbsFile& file = files.at(main);
  for (const auto& [key, other] : files) {
    if (key == main || IncludeGuard(other) != IncludeGuard(file)) continue;
    return absl::InvalidArgumentError(WithPlace(
        file.name, 1, 1,
        absl::StrCat("includes ", other.name,
                     ", and flatc makes the same include guard of both, "
                     "of the file's name and its last namespace, so that C++ skips one of the "
                     "headers; rename one of the files")));
  }
  return absl::OkStatus();
}

absl::Status CheckFlatcHeaderCompiles(const reflection::Schema& schema,
                                      const std::string& declaration_file, const std::string& name,
                                      const FbsText& text) {
  return Check(schema, declaration_file, name, text).Run();
}

}  // namespace verbena::codegen
