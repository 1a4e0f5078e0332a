// SPDX-License-Identifier: Apache-2.0
//
// BlockingWaiter: lives on the stack of a thread that waits for one call to end.
//
// The waiting thread either drives the poller itself and looks at done(), or sleeps in Wait. The
// poller's holder calls Finish once; the waiter may be gone the moment that it is seen.

#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace verbena {

class BlockingWaiter {
 public:
  bool done() const { return state_.load(std::memory_order_acquire) == kDone; }
  absl::Status& status() { return status_; }

  void Finish(absl::Status status);
  // Sleeps until Finish or until about `bound_ns` have passed; may return early.
  void Wait(int64_t bound_ns);

 private:
  static constexpr uint32_t kPending = 0;
  static constexpr uint32_t kSleeping = 1;  // Finish has to wake somebody.
  static constexpr uint32_t kDone = 2;

  std::atomic<uint32_t> state_{kPending};
  absl::Status status_;
};

}  // namespace verbena
