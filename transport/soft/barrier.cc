// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "glog/logging.h"

namespace verbena::soft {

bool RegisterForBarrier() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void HeavyBarrier() {
  // The kernel promises that a command that worked once works for ever.
  PCHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0)
      << "membarrier(2) fails although this process is registered";
}

}  // namespace verbena::soft
