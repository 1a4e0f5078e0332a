// SPDX-License-Identifier: Apache-2.0
//
// Where the kernel's file systems are mounted; a test puts a made-up tree here.

#pragma once

#include <string>

namespace verbena::doctor {

struct Roots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string dev = "/dev";
};

}  // namespace verbena::doctor
