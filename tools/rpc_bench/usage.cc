// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/usage.h"

#include <time.h>

#include "verbena/tools/rpc_bench/allocation_counter.h"

namespace verbena::bench {

UsageNow ProcessUsage() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);  // Can't fail for this clock id.
  UsageNow usage;
  usage.cpu_ns =
      static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
  usage.allocations = AllocationCount();
  return usage;
}

}  // namespace verbena::bench
