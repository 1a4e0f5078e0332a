// SPDX-License-Identifier: Apache-2.0
//
// MemoryBudget: how many bytes of registered memory something may have at once: a process, a
// connection. Blocks are charged when they are made and refunded when they are destroyed, whether
// anybody uses them or not, because registered memory is pinned either way.
//
// Threads: any.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace verbena {

class MemoryBudget {
 public:
  // For messages: `name` as in "the memory budget of the process", `remedy` as in "raise
  // BufferPoolOptions::bytes_max".
  MemoryBudget(std::string name, uint64_t bytes_max, std::string remedy = "raise it")
      : name_(std::move(name)), remedy_(std::move(remedy)), bytes_max_(bytes_max) {}

  // The one that everything shares that was given none: half of this host's memory.
  static const std::shared_ptr<MemoryBudget>& OfProcess();

  // False when `bytes` more would exceed it; nothing is charged then.
  bool TryCharge(uint64_t bytes);
  void Refund(uint64_t bytes);
  // RESOURCE_EXHAUSTED that names the budget, its size, what is in use, the need, and a remedy.
  absl::Status Exhausted(uint64_t bytes) const;

  // Somebody waits until bytes are refunded: others had better keep nothing unused.
  void AddWaiter(int change) { waiters_.fetch_add(change, std::memory_order_relaxed); }
  bool has_waiters() const { return waiters_.load(std::memory_order_relaxed) != 0; }

  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t bytes_in_use() const { return bytes_in_use_.load(std::memory_order_relaxed); }

 private:
  const std::string name_;
  const std::string remedy_;
  const uint64_t bytes_max_;
  std::atomic<uint64_t> bytes_in_use_{0};
  std::atomic<int> waiters_{0};
};

}  // namespace verbena
