// SPDX-License-Identifier: Apache-2.0
//
// SingleWriterCounter: a count that one thread changes and any thread reads. Changing it costs what
// a plain variable costs: with a single writer no locked instruction is needed.
//
// Threads: Add and Set from one thread at a time; value from any. A reader sees a value that was
// right a moment ago, and no order with other memory.

#pragma once

#include <atomic>
#include <cstdint>

namespace verbena {

class SingleWriterCounter {
 public:
  void Add(uint64_t count) { Set(value() + count); }
  void Subtract(uint64_t count) { Set(value() - count); }
  void Set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace verbena
