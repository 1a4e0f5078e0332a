// SPDX-License-Identifier: Apache-2.0
//
// Numbers for people. Pure.

#pragma once

#include <cstdint>
#include <string>

namespace verbena::doctor {

// "585 KiB", "8 MiB", "1.5 GiB", "unlimited".
std::string FormatBytes(uint64_t bytes);
// "1048560", "unlimited".
std::string FormatCount(uint64_t count);

}  // namespace verbena::doctor
