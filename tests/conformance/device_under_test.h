// SPDX-License-Identifier: Apache-2.0
//
// How a device joins the conformance suite. One file per device defines DevicesUnderTest(), and a
// cc_test links it with :suite (see BUILD and soft_shm.cc). Nothing else changes: what a device
// cannot do is read from its Capabilities and shows as a skipped test with the reason.
//
// Where a device is known to differ from the model in a way that no capability states, the
// difference is listed in that file, by test or by status, with the reason: a reader sees there
// what the layers above may not lean on.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/transport/address.h"
#include "verbena/transport/device.h"
#include "verbena/transport/work_request.h"

namespace verbena::conformance {

struct DeviceUnderTest {
  std::string name;  // Letters and digits: part of the test names.
  // Errors: UNAVAILABLE where this host has no such device; its tests are then skipped.
  std::function<absl::StatusOr<std::unique_ptr<Device>>()> create;
  // An address to listen on that no other call, in this or another process, has returned.
  std::function<Address()> fresh_address;
  // An absent device fails the suite: for devices that every host has.
  bool absent_is_failure = false;

  // The long tests run so much shorter: for devices a thousand times slower than others.
  uint32_t effort_divisor = 1;

  // "Suite.Test" -> why it is skipped on this device.
  std::map<std::string, std::string> known_differences;
  // A status the model demands -> what this device also reports in its place.
  std::multimap<CompletionStatus, CompletionStatus> may_report;
};

// Defined by the device's file.
std::vector<DeviceUnderTest> DevicesUnderTest();

}  // namespace verbena::conformance
