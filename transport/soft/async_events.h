// SPDX-License-Identifier: Apache-2.0
//
// Queues that wake a descriptor. Threads: any. Lifetime: the device's or the manager's.

#pragma once

#include <deque>
#include <mutex>
#include <utility>

#include "glog/logging.h"
#include "verbena/transport/device.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/shared_memory.h"

namespace verbena::soft {

// Events with a descriptor that is readable while any waits.
template <typename Event>
class EventQueue {
 public:
  explicit EventQueue(FileDescriptor event) : event_(std::move(event)) {}

  void Push(Event event) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    if (events_.size() == 1) SignalEvent(event_.get());
  }
  bool Pop(Event* event) {
    Event oldest{};
    {
      std::lock_guard lock(mutex_);
      if (events_.empty()) return false;
      oldest = std::move(events_.front());
      events_.pop_front();
      if (events_.empty()) ClearEvent(event_.get());
    }
    // Outside the lock: it may destroy what `event` held before.
    *event = std::move(oldest);
    return true;
  }
  template <typename Predicate>
  void EraseIf(Predicate predicate) {
    std::lock_guard lock(mutex_);
    if (events_.empty()) return;
    std::erase_if(events_, predicate);
    if (events_.empty()) ClearEvent(event_.get());
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return events_.size();
  }
  int fd() const { return event_.get(); }

 private:
  const FileDescriptor event_;
  std::mutex mutex_;
  std::deque<Event> events_;
};

// The device's asynchronous events, at most kAsyncEventsMax.
class AsyncEvents {
 public:
  explicit AsyncEvents(FileDescriptor event) : queue_(std::move(event)) {}

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
