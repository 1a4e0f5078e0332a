// SPDX-License-Identifier: Apache-2.0
//
// Writes GoogleMock's mocks of an IDL file's stubs: the same for every IDL. Pure functions; any
// thread.

#pragma once

#include <string>

#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

// The text of x_mock.verbena.h: for each service a mock of its StubInterface and one of its
// AsyncInterface. Empty but for the banner where there is no service.
std::string EmitMockHeader(const ServiceFile& file);

}  // namespace verbena::codegen
