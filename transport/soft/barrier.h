// SPDX-License-Identifier: Apache-2.0
//
// The asymmetric barrier between a sender, which runs all the time, and a receiver that goes to
// sleep or closes, which is rare.
//
//   sender:   publish;       LightBarrier;  read `wake`
//   receiver: set `wake`;    HeavyBarrier;  look for what was published
//
// One of the two must see the other's store. With membarrier(2) the light side costs nothing: the
// kernel makes every core that runs a registered process execute a fence during the heavy side.
// Where one of the two processes lacks it, both sides fence (`fence`, agreed on at connect).
//
// Any thread. Source: membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED.

#pragma once

#include <atomic>

namespace verbena::soft {

// Registers this process for other processes' heavy barriers. False if the kernel refuses.
bool RegisterForBarrier();

// A system call: microseconds. After RegisterForBarrier() returned true.
void HeavyBarrier();

// GCC warns that ThreadSanitizer does not understand fences. Nothing here relies on one for what
// it checks: memory that both sides map is seen by it as two.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wtsan"
inline void FullFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#pragma GCC diagnostic pop

inline void LightBarrier(bool fence) {
  if (fence) [[unlikely]] {
    FullFence();
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

}  // namespace verbena::soft
