// SPDX-License-Identifier: Apache-2.0
//
// Macros that the preprocessor would put in the place of a method or a service of that name: what
// the headers below generated code define and is spelled like an ordinary name (LOG, EINVAL, NAN).
// A pure function; any thread.

#pragma once

#include <string_view>

namespace verbena::codegen {

// Also true of names that no macro has yet, and that begin as all of a library's macros.
bool IsMacro(std::string_view name);

}  // namespace verbena::codegen
