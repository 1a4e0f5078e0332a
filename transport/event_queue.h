// SPDX-License-Identifier: Apache-2.0
//
// A queue of events with a descriptor that is readable while any waits: what devices give their
// asynchronous and connection events through. Threads: any.

#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "verbena/base/event_fd.h"
#include "verbena/base/unique_fd.h"

namespace verbena {

template <typename Event>
class EventQueue {
 public:
  // `event` is an eventfd, non-blocking.
  explicit EventQueue(UniqueFd event) : event_(std::move(event)) {}

  void Push(Event event) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    if (events_.size() == 1) SignalEventFd(event_.get());
  }
  bool Pop(Event* event) {
    Event oldest{};
    {
      std::lock_guard lock(mutex_);
      if (events_.empty()) return false;
      oldest = std::move(events_.front());
      events_.pop_front();
      if (events_.empty()) ClearEventFd(event_.get());
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
    if (events_.empty()) ClearEventFd(event_.get());
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return events_.size();
  }
  int fd() const { return event_.get(); }

 private:
  const UniqueFd event_;
  std::mutex mutex_;
  std::deque<Event> events_;
};

}  // namespace verbena
