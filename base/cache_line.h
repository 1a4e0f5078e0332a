// SPDX-License-Identifier: Apache-2.0
//
// kCacheLineBytes: the alignment that keeps data written by different cores on different lines.

#pragma once

#include <cstddef>

namespace verbena {

// 64 on x86-64 and on the server Arm cores (Neoverse). A constant of ours and not
// std::hardware_destructive_interference_size: that one changes with -mtune, and shared-memory
// layouts use this value on both sides.
inline constexpr std::size_t kCacheLineBytes = 64;

}  // namespace verbena
