// SPDX-License-Identifier: Apache-2.0
//
// Finds out the conditions of a measurement. Threads: one; runs `git`, so call it before any device
// is open.

#pragma once

#include "verbena/tools/rpc_bench/result.h"

namespace verbena::bench {

// All but the device, the wire and the cores, which the caller knows.
Conditions GatherConditions();

}  // namespace verbena::bench
