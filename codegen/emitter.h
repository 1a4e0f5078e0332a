// SPDX-License-Identifier: Apache-2.0
//
// Writes the C++ of one IDL file: the same for every IDL. Pure functions; any thread.

#pragma once

#include <string>

#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

// The text of x.verbena.h: for each message with fields that travel outside of it a class around
// it, and for each service a class with its stub, its asynchronous stub and its server side.
// Methods that stream get no code yet, and a comment that says so.
std::string EmitHeader(const ServiceFile& file);

// The text of x.verbena.cc.
std::string EmitSource(const ServiceFile& file);

}  // namespace verbena::codegen
