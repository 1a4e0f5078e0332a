// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/blocking_waiter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <utility>

namespace verbena {

void BlockingWaiter::Finish(absl::Status status) {
  status_ = std::move(status);
  if (state_.exchange(kDone, std::memory_order_acq_rel) == kSleeping) {
    // The waiter may have returned by now; waking an address where nobody waits is harmless.
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

void BlockingWaiter::Wait(int64_t bound_ns) {
  uint32_t expected = kPending;
  state_.compare_exchange_strong(expected, kSleeping, std::memory_order_acq_rel);
  if (expected == kDone) return;
  const timespec bound = {.tv_sec = bound_ns / 1'000'000'000, .tv_nsec = bound_ns % 1'000'000'000};
  syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kSleeping, &bound, nullptr, 0);
}

}  // namespace verbena
