// SPDX-License-Identifier: Apache-2.0
//
// While it lives, the peer knows that we may touch its memory: the peer closes (kWakeClosed) or
// takes back a key first and reads the mark then, we set the mark first and read those then.
//
// One at a time per queue pair, on the thread that posts.

#pragma once

#include <atomic>
#include <cstdint>

#include "verbena/transport/soft/barrier.h"
#include "verbena/transport/soft/segment.h"

namespace verbena::soft {

class ExecutingMark {
 public:
  // `count` is our copy of the shared word, which the peer could change. With `fence` the mark is
  // ordered before what follows by a full fence, else by the peer's HeavyBarrier().
  ExecutingMark(ControlPage* control, uint32_t* count, bool fence)
      : control_(control), count_(count) {
    control_->executing.store(++*count_, std::memory_order_relaxed);
    LightBarrier(fence);
  }
  ~ExecutingMark() { control_->executing.store(++*count_, std::memory_order_release); }
  ExecutingMark(const ExecutingMark&) = delete;
  ExecutingMark& operator=(const ExecutingMark&) = delete;

 private:
  ControlPage* const control_;
  uint32_t* const count_;
};

}  // namespace verbena::soft
