// SPDX-License-Identifier: Apache-2.0
//
// Which C++ identifier a service, a method, a class around a message or a mock gets. An IDL allows
// names that C++ does not (keywords), that a standard macro would replace (assert), or that the
// generated classes use themselves (Stub). Such a name gets a trailing '_', which is also protoc's
// and flatc's rule for messages. The name on the wire never changes. Pure functions; any thread.

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::codegen {

// A C++20 keyword or alternative token, or a macro that the messages' own headers include, too.
bool IsReservedInCpp(std::string_view name);

// kOther: classes around messages, and mocks.
enum class NameKind { kService, kMethod, kOther };

// C++ identifiers for siblings (the services of a file, the methods of a service), in their order,
// all different, and different from `taken`. A name that needs no change gets none, whatever its
// siblings are called.
std::vector<std::string> CppNames(NameKind kind, const std::vector<std::string>& names,
                                  const std::set<std::string>& taken);

// What a class around a message calls the accessors of its fields, given their names in the
// message's class, in their order: `x` stands for x(), set_x(), add_x() and clear_x(), and for the
// member verbena_x_. No two fields share any of these, and none is one of the class's own. A field
// that is called as another one's function (clear_x beside x) is the one that gives way.
std::vector<std::string> CppFieldNames(const std::vector<std::string>& names);

// "c" of "a::b::c::d" below "a::b"; empty where `cpp_namespace` is not below `outer`.
std::string NextComponent(std::string_view cpp_namespace, std::string_view outer);

// Names that the runtime declares in its namespace, `verbena`: taken there for services and
// classes.
std::set<std::string> RuntimeNames();

}  // namespace verbena::codegen
