// SPDX-License-Identifier: Apache-2.0
//
// Which C++ identifier a service or method gets. An IDL allows names that C++ does not (keywords),
// that a standard macro would replace (assert), or that the generated classes use themselves
// (Stub). Such a name gets a trailing '_', which is also protoc's rule for messages. The name on
// the wire never changes. Pure functions; any thread.

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::codegen {

// A C++20 keyword or alternative token, or a macro that the generated headers' includes define.
bool IsReservedInCpp(std::string_view name);

enum class NameKind { kService, kMethod };

// C++ identifiers for siblings (the services of a file, the methods of a service), in their order,
// all different, and different from `taken`. A name that needs no change gets none, whatever its
// siblings are called.
std::vector<std::string> CppNames(NameKind kind, const std::vector<std::string>& names,
                                  const std::set<std::string>& taken);

// Names that the runtime declares in its namespace, `verbena`: taken there for services.
std::set<std::string> RuntimeNames();

}  // namespace verbena::codegen
