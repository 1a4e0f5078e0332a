// SPDX-License-Identifier: Apache-2.0
//
// Which of the many counters say trouble, and which trouble. Pure.

#pragma once

#include <string>
#include <vector>

#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

enum class Trouble {
  kNone,
  kRetransmission,    // A packet or its acknowledgement was lost, and sent again.
  kOutOfSequence,     // A gap or a repetition was seen on arrival.
  kReceiverNotReady,  // A SEND found no receive.
  kDiscard,           // Packets thrown away for lack of buffers.
  kBroken,            // Connections or links that failed.
  kCongestion,        // Congestion marks and notifications. Not bad in itself.
  kPause,             // Pause frames. Not bad in itself.
};

Trouble MeaningOf(const Counter& counter);

// "retransmission", "receiver_not_ready", ...
const char* Name(Trouble trouble);

// Those above zero that mean this trouble.
std::vector<Counter> NonZero(const std::vector<Counter>& counters, Trouble trouble);

// The net devices below a port: those of its GIDs and of the addresses that lead to the device.
std::vector<const NetdevFacts*> NetdevsOf(const DeviceFacts& device, const PortFacts& port,
                                          const Facts& facts);

// The counters of the port and of its net devices.
std::vector<Counter> AllCounters(const DeviceFacts& device, const PortFacts& port,
                                 const Facts& facts);

}  // namespace verbena::doctor
