// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/flatbuffers_format.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "flatbuffers/flatbuffers.h"
#include "verbena/codegen/flatbuffers_names.h"

namespace verbena::codegen {
namespace {

constexpr uint32_t kDefaultAlignment = 8;  // Of the widest scalar.

const reflection::Object* Find(const reflection::Schema& schema, const std::string& name) {
  return schema.objects()->LookupByKey(name.c_str());
}

class AlignmentSearch {
 public:
  explicit AlignmentSearch(const reflection::Schema& schema) : schema_(schema) {}

  uint32_t Run(const reflection::Object& root) {
    Reach(&root);
    while (!to_visit_.empty()) {
      const reflection::Object& object = *to_visit_.back();
      to_visit_.pop_back();
      Need(static_cast<uint32_t>(object.minalign()));
      for (const reflection::Field* field : *object.fields()) VisitField(object, *field);
    }
    return alignment_;
  }

 private:
  void Need(uint32_t alignment) { alignment_ = std::max(alignment_, alignment); }

  void Reach(const reflection::Object* object) {
    if (object != nullptr && seen_.insert(object).second) to_visit_.push_back(object);
  }

  void VisitField(const reflection::Object& parent, const reflection::Field& field) {
    VisitType(*field.type());
    if (field.attributes() == nullptr) return;
    if (const reflection::KeyValue* force = field.attributes()->LookupByKey("force_align")) {
      Need(static_cast<uint32_t>(std::strtoul(force->value()->c_str(), nullptr, 10)));
    }
    if (const reflection::KeyValue* nested = field.attributes()->LookupByKey("nested_flatbuffer")) {
      VisitNested(parent, nested->value()->str());
    }
  }

  // As flatc looks it up: in full, then in the namespace.
  void VisitNested(const reflection::Object& parent, const std::string& name) {
    const reflection::Object* root = Find(schema_, name);
    if (root == nullptr) {
      root = Find(schema_, absl::StrCat(NamespaceOf(parent.name()->str()), ".", name));
    }
    Reach(root);
  }

  void VisitType(const reflection::Type& type) {
    const bool holds_many = type.base_type() == reflection::Vector ||  //
                            type.base_type() == reflection::Array;
    const reflection::BaseType base = holds_many ? type.element() : type.base_type();
    if (base == reflection::Obj) Reach(schema_.objects()->Get(static_cast<uint32_t>(type.index())));
    if (base == reflection::Union) {
      VisitUnion(*schema_.enums()->Get(static_cast<uint32_t>(type.index())));
    }
  }

  void VisitUnion(const reflection::Enum& type) {
    for (const reflection::EnumVal* value : *type.values()) {
      if (value->union_type() != nullptr) VisitType(*value->union_type());
    }
  }

  const reflection::Schema& schema_;
  uint32_t alignment_ = kDefaultAlignment;
  std::set<const reflection::Object*> seen_;
  std::vector<const reflection::Object*> to_visit_;
};

}  // namespace

uint32_t AlignmentOf(const reflection::Object& table, const reflection::Schema& schema) {
  return AlignmentSearch(schema).Run(table);
}

std::string IdentifierOf(const reflection::Object& table, const reflection::Schema& declaring) {
  const reflection::Object* root = declaring.root_table();
  if (root == nullptr || root->name()->str() != table.name()->str()) return "";
  return declaring.file_ident() == nullptr ? "" : declaring.file_ident()->str();
}

std::vector<std::string> FlatCodec(const std::string& cpp_type, const std::string& identifier,
                                   uint32_t alignment) {
  std::vector<std::string> fields;
  if (!identifier.empty())
    fields.push_back(absl::StrCat(".identifier = \"", absl::CEscape(identifier), "\""));
  if (alignment != kDefaultAlignment) fields.push_back(absl::StrCat(".alignment = ", alignment));
  const std::string codec = absl::StrCat("::verbena::kFlatBuffersCodec<", cpp_type);
  if (fields.empty()) return {codec + ">"};
  return {codec, absl::StrCat("::verbena::FlatFormat{", absl::StrJoin(fields, ", "), "}>")};
}

}  // namespace verbena::codegen
