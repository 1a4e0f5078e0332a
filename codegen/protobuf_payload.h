// SPDX-License-Identifier: Apache-2.0
//
// Which fields are marked [(verbena.placement) = PAYLOAD], and where that is a mistake. Pure
// functions; any thread.

#pragma once

#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"

namespace verbena::codegen {

bool IsPayload(const google::protobuf::FieldDescriptor& field);

// Of the message itself, not of those in it.
bool HasPayloadFields(const google::protobuf::Descriptor& message);

// In the order of the file; a nested message follows the one that it is in.
std::vector<const google::protobuf::Descriptor*> MessagesWithPayload(
    const google::protobuf::FileDescriptor& file);

// INVALID_ARGUMENT, with place and remedy, where `file` marks a field that can't travel outside of
// its message.
absl::Status CheckPayloadFields(const google::protobuf::FileDescriptor& file);

// INVALID_ARGUMENT, at the method, where a message below its request or response has a field that
// is marked: it would travel inside, against what the schema says.
absl::Status CheckNoPayloadBelow(const google::protobuf::MethodDescriptor& method);

}  // namespace verbena::codegen
