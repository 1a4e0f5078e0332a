// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: where users get Buffers that they fill and send. What was used before is used again,
// without an allocation, a lock or a system call, and without a new registration at the devices
// that know it.
//
// Threads: any. Lifetime: Buffers may outlive the BufferPool; their memory is then unmapped when
// the last of them is gone.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "verbena/transport/block_pool.h"
#include "verbena/transport/buffer.h"
#include "verbena/transport/memory_budget.h"

namespace verbena {

struct BufferPoolOptions {
  // Shared with whatever else was given it. Null: MemoryBudget::OfProcess().
  std::shared_ptr<MemoryBudget> budget = nullptr;
  // Of this pool, in use or not, in blocks of up to an eighth more than was asked for (16 KiB at
  // least). 0: no limit but the budget.
  uint64_t bytes_max = 0;
  // Makes the pages exist at Allocate, on the NUMA node of its thread, rather than on first use.
  // Only then can memory come from the huge pages that the host has set aside (vm.nr_hugepages):
  // where a control group forbids them, their first use would be a SIGBUS. Transparent huge pages
  // don't need it.
  bool prefault = false;
};

class BufferPool {
 public:
  explicit BufferPool(BufferPoolOptions options = {});
  // Unmaps what is unused.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A Buffer of exactly `bytes`, page-aligned. Its content is undefined: zeros, or what the last
  // user left. Fast when a block of up to twice the size is unused; else slow, since one is made,
  // and when there is no room, unused ones are unmapped first. Errors: RESOURCE_EXHAUSTED naming
  // the budget or limit.
  absl::StatusOr<Buffer> Allocate(size_t bytes);

  // Unmaps what is unused. Slow.
  void Trim();
  uint64_t bytes() const;  // Of all blocks, used or not.

 private:
  const std::shared_ptr<BlockPool> pool_;
};

}  // namespace verbena
