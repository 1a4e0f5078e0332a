// SPDX-License-Identifier: Apache-2.0
//
// What the services of rpc_bench share. Constants.

#pragma once

#include <cstdint>

namespace verbena::bench {

// A request of a few bytes must not make a server allocate what it likes.
inline constexpr uint64_t kDownloadBytesMax = uint64_t{1} << 30;

}  // namespace verbena::bench
