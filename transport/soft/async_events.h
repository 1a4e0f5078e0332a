// SPDX-License-Identifier: Apache-2.0
//
// The device's asynchronous events. Threads: any. Lifetime: the device's.

#pragma once

#include <utility>

#include "glog/logging.h"
#include "verbena/transport/device.h"
#include "verbena/transport/event_queue.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/shared_memory.h"

namespace verbena::soft {

// The device's asynchronous events, at most kAsyncEventsMax.
class AsyncEvents {
 public:
  explicit AsyncEvents(UniqueFd event) : queue_(std::move(event)) {}

  void Push(const AsyncEvent& event) {
    if (queue_.size() >= kAsyncEventsMax) {
      LOG_EVERY_N(ERROR, 1000) << "an asynchronous event is lost: nobody takes them";
      return;
    }
    queue_.Push(event);
  }
  bool Pop(AsyncEvent* event) { return queue_.Pop(event); }
  // No event names a queue that is gone.
  void Forget(const SharedReceiveQueue* queue) {
    queue_.EraseIf([queue](const AsyncEvent& event) { return event.shared_receive == queue; });
  }
  int fd() const { return queue_.fd(); }

 private:
  EventQueue<AsyncEvent> queue_;
};

}  // namespace verbena::soft
