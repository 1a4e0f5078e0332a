// SPDX-License-Identifier: Apache-2.0
//
// The net devices of this network namespace, below and beside RDMA. Any thread.

#pragma once

#include <vector>

#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/roots.h"

namespace verbena::doctor {

// From sysfs alone.
std::vector<NetdevFacts> ReadSysfsNetdevs(const Roots& roots);
// Asks the kernel for the rest: counters of the driver, pause frames, priority flow control. A
// driver that does not know the question leaves things as they are.
void AskNetdev(NetdevFacts* netdev);
// Addresses of the interfaces of this namespace.
std::vector<LocalAddress> ReadAddresses();

}  // namespace verbena::doctor
