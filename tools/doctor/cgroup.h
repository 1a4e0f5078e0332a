// SPDX-License-Identifier: Apache-2.0
//
// The limits of the control groups that this process is in, version 1 or 2. Any thread.

#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/roots.h"

namespace verbena::doctor {

// The smallest memory limit on the way from the group to the root; kUnlimited when there is none.
uint64_t ReadCgroupMemoryMax(const Roots& roots);
// Devices with a limit; the smallest on the way to the root.
std::vector<CgroupRdmaLimit> ReadCgroupRdma(const Roots& roots);

// A file rdma.max: "mlx5_0 hca_handle=2 hca_object=max" per line.
std::vector<CgroupRdmaLimit> ParseRdmaMax(absl::string_view text);

}  // namespace verbena::doctor
