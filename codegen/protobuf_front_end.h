// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's front end: a file descriptor becomes a ServiceFile. Pure; any thread.

#pragma once

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "verbena/codegen/generator_options.h"
#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

// INVALID_ARGUMENT where no C++ can be generated that compiles: the message has the form
// "dir/greeter.proto:line:column: what is wrong; what to do".
absl::StatusOr<ServiceFile> ReadProtobufFile(const google::protobuf::FileDescriptor& file,
                                             const GeneratorOptions& options);

}  // namespace verbena::codegen
