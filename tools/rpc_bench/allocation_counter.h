// SPDX-License-Identifier: Apache-2.0
//
// Counts this process's heap allocations: the C library's malloc family is replaced by functions
// that count and then allocate, so operator new, Protobuf and every other library are counted too.
//
// Threads: any. Not available under sanitizers, which replace malloc themselves.

#pragma once

#include <cstdint>
#include <optional>

namespace verbena::bench {

// malloc, calloc, realloc, aligned allocations, and what is built on them, since the start; all
// threads. Empty where it is not available.
std::optional<uint64_t> AllocationCount();

}  // namespace verbena::bench
