// SPDX-License-Identifier: Apache-2.0
//
// What the host, the container and the process allow. Any thread.

#pragma once

#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/roots.h"

namespace verbena::doctor {

// From files: modules, device nodes, control groups, namespaces, the exemption from the limit of
// locked memory.
HostFacts ReadHost(const Roots& roots);
// The limit of locked memory of this process.
void ReadMemlock(HostFacts* host);

}  // namespace verbena::doctor
