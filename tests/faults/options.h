// SPDX-License-Identifier: Apache-2.0
//
// What a script may say to a program of the fault tests, each as NAME=VALUE.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "verbena/transport/device.h"
#include "verbena/transport/endpoint_options.h"

namespace verbena::faults {

struct Options {
  std::string target;
  // Of the files of ScriptLink, and the server's NAME.executions.
  std::string name;
  std::chrono::milliseconds detection_time = EndpointOptions().detection_time;
  // Of RDMA; empty: what the routes choose. A server needs it where two devices of one host are
  // joined: there the route to the one, which a client goes, leaves by the other.
  std::string device;
  // ---- Client ----
  uint32_t in_flight = 16;
  // Of its first call. A client that follows another at one server has to be above it.
  uint64_t first_id = 1;
  // Of each call. No scenario lets a call wait for so long: one that ends so was hanging.
  std::chrono::milliseconds deadline{60'000};
  // After a call that failed, before the next in its place: without it the calls that are refused
  // while the channel backs off would take a core.
  std::chrono::milliseconds pause{20};
};

// Null without a name.
std::unique_ptr<Device> OpenDevice(const Options& options);

int RunServer(const Options& options);
int RunClient(const Options& options);

}  // namespace verbena::faults
