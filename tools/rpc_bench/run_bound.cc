// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/run_bound.h"

#include <unistd.h>

#include <cstdio>

namespace verbena::bench {

RunBound::RunBound(std::chrono::duration<double> bound)
    : thread_([this, bound] { Watch(bound); }) {}

RunBound::~RunBound() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void RunBound::Watch(std::chrono::duration<double> bound) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, bound, [this] { return over_; })) return;
  std::fprintf(stderr,
               "rpc_bench: DEADLINE_EXCEEDED: the measurement is not over after %.1f s; is the "
               "server stopped or overloaded?\n",
               bound.count());
  // Not exit(): whatever hangs would hang the destructors too.
  _exit(1);
}

}  // namespace verbena::bench
