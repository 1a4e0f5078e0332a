// SPDX-License-Identifier: Apache-2.0
//
// The PCI device below an RDMA device. Any thread.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

// `folder` is .../infiniband/NAME/device. Nothing when there is none, or it is not on PCI.
std::optional<PciFacts> ReadPci(const std::string& folder);

// Whether the device may reorder its writes: bit "Enable Relaxed Ordering" of PCI Express's Device
// Control register (PCI Express Base Specification, 7.5.3.4). `config` is the configuration space;
// nothing when it ends too early, which it does for all but root, or has no such register.
std::optional<bool> RelaxedOrdering(std::string_view config);

}  // namespace verbena::doctor
