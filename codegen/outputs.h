// SPDX-License-Identifier: Apache-2.0
//
// From the model to files and warnings, for the two generators. Pure functions; any thread.

#pragma once

#include <string>
#include <vector>

#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

struct OutputFile {
  std::string path;  // "dir/greeter.verbena.h", below the folder of outputs.
  std::string text;
};

// Header and source, and with `mocks` the header of mocks. Never fewer: a build has to know what
// comes out before it reads the schema.
std::vector<OutputFile> EmitAll(const ServiceFile& file, bool mocks);

// What is left out, a line for each: "dir/greeter.proto:6:5: warning: ...".
std::string Warnings(const ServiceFile& file);

}  // namespace verbena::codegen
