// SPDX-License-Identifier: Apache-2.0
//
// Where something stands in a .proto file, for errors and comments. Pure functions; any thread.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"

namespace verbena::codegen {

// Counts from 0; line and column are -1 where it is not known, so that 1 more is 0.
template <class D>
google::protobuf::SourceLocation LocationOf(const D& descriptor) {
  google::protobuf::SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) location.start_line = location.start_column = -1;
  return location;
}

// Of `file`'s package statement; likewise.
google::protobuf::SourceLocation PackageLocation(const google::protobuf::FileDescriptor& file);

// INVALID_ARGUMENT with "dir/greeter.proto:line:column: message".
absl::Status ErrorAt(const google::protobuf::FileDescriptor& file,
                     const google::protobuf::SourceLocation& location, const std::string& message);

// The comment before it, or else the one behind it, without "//".
std::string CommentOf(const google::protobuf::SourceLocation& location);

}  // namespace verbena::codegen
