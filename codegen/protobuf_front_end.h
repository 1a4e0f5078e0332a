// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's front end: a file descriptor becomes a ServiceFile. Pure; any thread.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

struct ProtobufFrontEndOptions {
  // Put before the path of each generated header in an #include, as a folder: "gen" makes
  // #include "gen/dir/greeter.pb.h". Does not apply to Protobuf's own google/protobuf/*.pb.h.
  std::string include_prefix;
};

// "dir/greeter" of "dir/greeter.proto": what outputs are named after, as protoc does.
std::string OutputStem(const google::protobuf::FileDescriptor& file);

// INVALID_ARGUMENT where no C++ can be generated that compiles: the message has the form
// "dir/greeter.proto:line:column: what is wrong; what to do".
absl::StatusOr<ServiceFile> ReadProtobufFile(const google::protobuf::FileDescriptor& file,
                                             const ProtobufFrontEndOptions& options);

}  // namespace verbena::codegen
