// SPDX-License-Identifier: Apache-2.0
//
// What `ethtool -S` and `ethtool -a` tell of a net device. Any thread.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

// The driver's own counters; empty when it has none.
std::vector<Counter> EthtoolCounters(const std::string& netdev);
// Whether pause frames for all priorities (IEEE 802.3x) are on in any direction.
std::optional<bool> EthtoolPause(const std::string& netdev);

}  // namespace verbena::doctor
