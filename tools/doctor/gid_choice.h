// SPDX-License-Identifier: Apache-2.0
//
// Which GID of a port a connection should use, and why. The order of the table means nothing: it
// changes with every address that comes or goes, and differs between hosts and containers. Pure.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

enum class Family { kAny, kIpv4, kIpv6 };

struct GidOpinion {
  bool usable = false;
  std::string note;  // "RoCE v2, IPv4 address of eth0", or why it is not usable.
};

struct GidChoice {
  std::vector<GidOpinion> opinions;  // One per GID of the port, in its order.
  std::optional<size_t> chosen;      // Of the port's list; not the index in the device's table.
  std::string why;                   // Also when there is none.
};

// RoCE: usable is a GID whose net device and address are in this network namespace (`facts`), and
// of the wanted family. Of these RoCE v2 goes before v1, then an address before a link-local one,
// then IPv4 before IPv6, then the smaller address, so that the choice does not depend on the order
// of the table. InfiniBand: the port's own. iWARP: none, addresses are all it needs.
GidChoice ChooseGid(const DeviceFacts& device, const PortFacts& port, const Facts& facts,
                    Family family);

// Whether a net device of this name is in this network namespace.
bool IsHere(const std::string& netdev, const Facts& facts);

// The net device that the device's first GID names; empty when none does.
std::string NetdevName(const DeviceFacts& device);

}  // namespace verbena::doctor
