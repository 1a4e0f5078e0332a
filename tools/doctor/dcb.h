// SPDX-License-Identifier: Apache-2.0
//
// Data center bridging of a net device: which priorities are paused and not dropped (priority flow
// control, IEEE 802.1Qbb), as `dcb pfc show` tells. Any thread.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

// The kernel's answer about this net device, a netlink message (linux/dcbnl.h); empty when there is
// none.
std::vector<uint8_t> AskDcb(const std::string& netdev);

// Takes priority flow control and its frame counters out of the answer. What is absent, or not a
// whole message, stays as it is.
void ParseDcbAnswer(std::span<const uint8_t> message, NetdevFacts* netdev);

}  // namespace verbena::doctor
