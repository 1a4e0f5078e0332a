// SPDX-License-Identifier: Apache-2.0
//
// Names the services of a file, their methods and their mocks, whatever the IDL. Pure functions;
// any thread.

#pragma once

#include <functional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

// "dir/greeter.proto:line:column: message", without what is 0 of the place.
std::string WithPlace(const std::string& file, int line, int column, const std::string& message);

// Fills cpp_name of services and methods, and the names of the mocks. Each service has its
// cpp_namespace; `taken(cpp_namespace)` is what else is declared there. INVALID_ARGUMENT, with
// place and remedy, where two services meet in one namespace with one name.
absl::Status NameServices(
    const std::function<std::set<std::string>(const std::string& cpp_namespace)>& taken,
    ServiceFile& file);

}  // namespace verbena::codegen
