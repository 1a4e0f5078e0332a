// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/protobuf_location.h"

#include "google/protobuf/descriptor.pb.h"
#include "verbena/codegen/service_names.h"

namespace verbena::codegen {

using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::SourceLocation;

SourceLocation PackageLocation(const FileDescriptor& file) {
  SourceLocation location;
  if (!file.GetSourceLocation({FileDescriptorProto::kPackageFieldNumber}, &location)) {
    location.start_line = location.start_column = -1;
  }
  return location;
}

absl::Status ErrorAt(const FileDescriptor& file, const SourceLocation& location,
                     const std::string& message) {
  return absl::InvalidArgumentError(
      WithPlace(file.name(), location.start_line + 1, location.start_column + 1, message));
}

std::string CommentOf(const SourceLocation& location) {
  return location.leading_comments.empty() ? location.trailing_comments : location.leading_comments;
}

}  // namespace verbena::codegen
