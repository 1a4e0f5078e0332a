// SPDX-License-Identifier: Apache-2.0
//
// What a table asks of the bytes that hold it: an identifier, and an alignment. Pure functions; any
// thread.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flatbuffers/reflection_generated.h"

namespace verbena::codegen {

// The largest alignment, in bytes and at least 8, of anything that a buffer with `table` as its
// root may hold: structs and vectors with force_align, in other tables, unions and nested buffers
// too. Of fields that are deprecated as well, since an older peer may still write them.
uint32_t AlignmentOf(const reflection::Object& table, const reflection::Schema& schema);

// "MONS", where `declaring` is the schema of the .fbs file that declares `table`, and that makes it
// its root_type and has a file_identifier; else empty.
std::string IdentifierOf(const reflection::Object& table, const reflection::Schema& declaring);

// The codec of `cpp_type` ("::a::Monster") in generated code, as MethodModel has it.
std::vector<std::string> FlatCodec(const std::string& cpp_type, const std::string& identifier,
                                   uint32_t alignment);

}  // namespace verbena::codegen
