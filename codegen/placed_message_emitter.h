// SPDX-License-Identifier: Apache-2.0
//
// Writes the C++ class around a message whose fields travel in part outside of it: the same for
// every IDL. Pure functions; any thread.

#pragma once

#include "verbena/codegen/printer.h"
#include "verbena/codegen/service_model.h"

namespace verbena::codegen {

// For x.verbena.h: needs <cstdint>, <utility>, <vector>, the message's header, and
// verbena/rpc/attachment.h.
void PrintPlacedMessageClass(const PlacedMessageModel& message, Printer& printer);

// For x.verbena.cc: the functions that only the runtime calls.
void PrintPlacedMessageFunctions(const PlacedMessageModel& message, Printer& printer);

}  // namespace verbena::codegen
