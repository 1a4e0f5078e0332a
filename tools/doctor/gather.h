// SPDX-License-Identifier: Apache-2.0
//
// All facts of this machine, as far as this process may see them. Takes some tens of milliseconds:
// it opens every RDMA device and makes and destroys objects there. Nothing is changed. One thread.

#pragma once

#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/roots.h"

namespace verbena::doctor {

// The whole machine.
Facts Gather();

// The part that files tell, which is all that a test's made-up tree can hold.
Facts GatherFromFiles(const Roots& roots);

}  // namespace verbena::doctor
