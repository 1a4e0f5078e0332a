// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/allocation_counter.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <atomic>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VERBENA_BENCH_COUNTS_ALLOCATIONS 1
#else
#define VERBENA_BENCH_COUNTS_ALLOCATIONS 0
#endif

#if VERBENA_BENCH_COUNTS_ALLOCATIONS

namespace {

// One counter for all threads: where allocations are few its line hardly moves, and where they are
// many they are what the measurement shall show.
constinit std::atomic<uint64_t> allocations{0};

void Count() { allocations.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

// Replacing malloc: see "Replacing malloc" in the manual of the GNU C library, which also promises
// that its own allocations then come here. free() stays the library's, as the memory does.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  Count();
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  Count();
  return __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) {
  Count();
  return __libc_realloc(old, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  Count();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  Count();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** result, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) {
    return EINVAL;
  }
  Count();
  void* memory = __libc_memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}

}  // extern "C"

#endif  // VERBENA_BENCH_COUNTS_ALLOCATIONS

namespace verbena::bench {

std::optional<uint64_t> AllocationCount() {
#if VERBENA_BENCH_COUNTS_ALLOCATIONS
  return allocations.load(std::memory_order_relaxed);
#else
  return std::nullopt;
#endif
}

}  // namespace verbena::bench
