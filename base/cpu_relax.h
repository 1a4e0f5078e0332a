// SPDX-License-Identifier: Apache-2.0
//
// CpuRelax(): the hint that belongs in the body of every busy-wait loop. It tells the core that
// this thread waits for another one, which saves power and leaves a hyper-thread sibling room; on
// x86 it also avoids the pipeline flush at the moment the awaited cache line changes.
//
// Any thread. No system call: the thread keeps its core. A loop that may wait for long needs its
// own bound after which it sleeps.

#pragma once

namespace verbena {

inline void CpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // isb holds the core for about as long as x86's pause; aarch64's yield is a no-op on most cores.
  asm volatile("isb" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace verbena
