// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/protobuf_payload.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/compiler/cpp/names.h"
#include "verbena/codegen/names.h"
#include "verbena/codegen/protobuf_location.h"
#include "verbena/options.pb.h"

namespace verbena::codegen {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;

void AddMessagesWithPayload(const Descriptor& message, std::vector<const Descriptor*>& result) {
  if (HasPayloadFields(message)) result.push_back(&message);
  for (int i = 0; i < message.nested_type_count(); ++i) {
    AddMessagesWithPayload(*message.nested_type(i), result);
  }
}

std::string TypeOf(const FieldDescriptor& field) {
  if (field.is_map()) return "a map";
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

// Why `field` can't travel outside, and what to do; empty when it can.
std::string Problem(const FieldDescriptor& field) {
  if (field.is_extension()) {
    return "an extension, and only fields that the message itself declares can travel outside of "
           "it; remove the mark, or make it a field of the message";
  }
  if (field.type() != FieldDescriptor::TYPE_BYTES) {
    return absl::StrCat("of type ", TypeOf(field),
                        ", and only bytes and repeated bytes can travel outside of the message; "
                        "remove the mark, or make it bytes");
  }
  if (field.real_containing_oneof() != nullptr) {
    return absl::StrCat("in oneof ", field.real_containing_oneof()->name(),
                        ", which could not tell that it is set when it travels outside of the "
                        "message; move it out of the oneof");
  }
  if (field.is_required()) {
    return "required, and the message is without it when it travels outside; make it optional";
  }
  if (field.has_default_value()) {
    return "given a default, which a field that travels outside of the message does not have; "
           "remove the default";
  }
  const std::string name = google::protobuf::compiler::cpp::FieldName(&field);
  if (IsReservedInCpp(name)) {
    return absl::StrCat("called \"", name,
                        "\" in C++, which is reserved in C++20, and protoc writes it into the "
                        ".pb.h as it is; rename the field");
  }
  return "";
}

absl::Status CheckField(const FieldDescriptor& field) {
  if (!IsPayload(field)) return absl::OkStatus();
  const std::string problem = Problem(field);
  if (problem.empty()) return absl::OkStatus();
  return ErrorAt(*field.file(), LocationOf(field),
                 absl::StrCat(field.full_name(), " is marked PAYLOAD and is ", problem));
}

absl::Status CheckMessage(const Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    if (absl::Status s = CheckField(*message.field(i)); !s.ok()) return s;
  }
  for (int i = 0; i < message.extension_count(); ++i) {
    if (absl::Status s = CheckField(*message.extension(i)); !s.ok()) return s;
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    if (absl::Status s = CheckMessage(*message.nested_type(i)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// The message that `field` holds, also as a map's value; null when it holds none.
const Descriptor* MessageIn(const FieldDescriptor& field) {
  if (field.is_map()) return field.message_type()->map_value()->message_type();
  return field.message_type();
}

// The first field of `message`, or of a message in it, that holds a message with payload fields.
const FieldDescriptor* FieldWithPayloadBelow(const Descriptor& message,
                                             std::set<const Descriptor*>& seen) {
  if (!seen.insert(&message).second) return nullptr;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const Descriptor* below = MessageIn(field);
    if (below == nullptr) continue;
    if (HasPayloadFields(*below)) return &field;
    if (const FieldDescriptor* found = FieldWithPayloadBelow(*below, seen)) return found;
  }
  return nullptr;
}

const FieldDescriptor& FirstPayloadField(const Descriptor& message) {
  int i = 0;
  while (!IsPayload(*message.field(i))) ++i;
  return *message.field(i);
}

}  // namespace

bool IsPayload(const FieldDescriptor& field) {
  return field.options().GetExtension(placement) == PAYLOAD;
}

bool HasPayloadFields(const Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    if (IsPayload(*message.field(i))) return true;
  }
  return false;
}

std::vector<const Descriptor*> MessagesWithPayload(const FileDescriptor& file) {
  std::vector<const Descriptor*> result;
  for (int i = 0; i < file.message_type_count(); ++i) {
    AddMessagesWithPayload(*file.message_type(i), result);
  }
  return result;
}

absl::Status CheckPayloadFields(const FileDescriptor& file) {
  for (int i = 0; i < file.message_type_count(); ++i) {
    if (absl::Status s = CheckMessage(*file.message_type(i)); !s.ok()) return s;
  }
  for (int i = 0; i < file.extension_count(); ++i) {
    if (absl::Status s = CheckField(*file.extension(i)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckNoPayloadBelow(const MethodDescriptor& method) {
  std::set<const Descriptor*> seen;  // One for both: what is below the request is fine.
  for (const Descriptor* type : {method.input_type(), method.output_type()}) {
    const FieldDescriptor* field = FieldWithPayloadBelow(*type, seen);
    if (field == nullptr) continue;
    const FieldDescriptor& payload = FirstPayloadField(*MessageIn(*field));
    return ErrorAt(
        *method.file(), LocationOf(method),
        absl::StrCat(method.full_name(), " uses message ", type->full_name(), ", and below it ",
                     field->full_name(), " holds a message whose field ", payload.full_name(),
                     " is marked PAYLOAD; only fields of the request or response message itself "
                     "can travel outside of it: remove the mark, or move the field to ",
                     type->full_name()));
  }
  return absl::OkStatus();
}

}  // namespace verbena::codegen
