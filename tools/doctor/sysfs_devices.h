// SPDX-License-Identifier: Apache-2.0
//
// RDMA devices as sysfs shows them: also those that this process may not open. Any thread.

#pragma once

#include <vector>

#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/roots.h"

namespace verbena::doctor {

// Everything but `verbs`, and what PortFacts takes from there.
std::vector<DeviceFacts> ReadSysfsDevices(const Roots& roots);

// The counters in a folder of one number per file.
std::vector<Counter> ReadCounters(const std::string& folder, const std::string& source);

}  // namespace verbena::doctor
