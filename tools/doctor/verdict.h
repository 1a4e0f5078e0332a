// SPDX-License-Identifier: Apache-2.0
//
// Whether RDMA can be used here, and if not, the one reason. Pure.

#pragma once

#include <string>
#include <vector>

#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/gid_choice.h"

namespace verbena::doctor {

// In the order in which they are looked at: a later one means that everything before is in order.
enum class Reason {
  kNoVerbsModule,         // The kernel has no ib_uverbs.
  kNoDevice,              // It has, but no device.
  kNoDeviceNode,          // /dev/infiniband is not in this container.
  kNoPermission,          // It is, and may not be opened.
  kNoProvider,            // libibverbs has no library for the device.
  kOpenFailed,            // Opening failed for another reason.
  kNoReliableConnection,  // Verbs without them, as EFA.
  kNoMemory,              // Locked memory, or the device's own, does not do for one connection.
  kPortDown,
  kNoConnectionManager,  // /dev/infiniband/rdma_cm is missing or may not be opened.
  kOtherNamespace,       // Its net devices are in other network namespaces.
  kNoAddress,            // No IP address of this network namespace leads to the device.
  kUsable,
};

struct DeviceVerdict {
  Reason reason = Reason::kUsable;
  std::string detail;  // One line for people.
};

struct Verdict {
  Reason reason =
      Reason::kNoDevice;  // kUsable when one device is; else of the one that got furthest.
  std::string detail;
  std::vector<DeviceVerdict> devices;  // In the order of the facts.
};

Verdict Judge(const Facts& facts, Family family);

// For programs: "no_verbs_module", "port_down", "usable".
const char* Name(Reason reason);

// Bytes of locked memory that a connection with default options needs
// (transport/endpoint_options.h). The device's own queues come on top: some tens of KiB.
uint64_t ConnectionBytes();
// How many such connections the limit of locked memory allows; kUnlimited when it does not hold.
uint64_t ConnectionsByMemlock(const HostFacts& host);

// Addresses that the connection manager leads to this device, of the wanted family.
std::vector<AddressRoute> RoutesTo(const DeviceFacts& device, const Facts& facts, Family family);

}  // namespace verbena::doctor
