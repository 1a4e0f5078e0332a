// SPDX-License-Identifier: Apache-2.0
//
// IndexStack: a lock-free stack of the indices of a table, last in first out. The links are in the
// table, so that one index is in at most one of several stacks.
//
// Threads: any. No lock, no allocation, no system call. What was done before a push is visible
// after the pop that took it. Lifetime: the table must not shrink while a stack is in use: a slow
// thread reads the link of an index that others have popped since.
//
// `Links` gives and sets the 32 bits below an index, in an atomic<uint32_t>, relaxed:
//   uint32_t Next(uint32_t index);
//   void SetNext(uint32_t index, uint32_t next);

#pragma once

#include <atomic>
#include <cstdint>

namespace verbena {

class IndexStack {
 public:
  // REQUIRES: `index` < 2^32 - 1 and is in no stack.
  template <class Links>
  void Push(Links& links, uint32_t index) {
    uint64_t top = top_.load(std::memory_order_relaxed);
    uint64_t pushed;
    do {
      links.SetNext(index, static_cast<uint32_t>(top));
      pushed = ((top & kTagMask) + kTagOne) | (index + 1);
    } while (!top_.compare_exchange_weak(top, pushed, std::memory_order_seq_cst,
                                         std::memory_order_relaxed));
  }

  // False when there is none.
  template <class Links>
  bool TryPop(Links& links, uint32_t* index) {
    uint64_t top = top_.load(std::memory_order_seq_cst);
    while ((top & ~kTagMask) != 0) {
      *index = static_cast<uint32_t>(top) - 1;
      const uint32_t next = links.Next(*index);
      if (top_.compare_exchange_weak(top, (top & kTagMask) | next)) return true;
    }
    return false;
  }

 private:
  static constexpr uint64_t kTagOne = uint64_t{1} << 32;
  static constexpr uint64_t kTagMask = ~(kTagOne - 1);

  // The top index + 1, or 0 when there is none, and above it a tag that each push changes. Without
  // the tag a thread that has read the top and what is below it could put the latter in place after
  // others have popped both and pushed the top again (ABA). Now it would have to sleep through
  // exactly a multiple of 2^32 pushes.
  //
  // Sequentially consistent, so that a push and then a look at some flag, and setting that flag and
  // then popping all there is, can't miss each other.
  std::atomic<uint64_t> top_{0};
};

}  // namespace verbena
