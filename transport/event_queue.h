// SPDX-License-Identifier: Apache-2.0
//
// A queue of events with a descriptor that is readable while any waits: what devices give their
// asynchronous and connection events through. Threads: any.

#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

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
    if (events_.size() == 1) Set();
  }
  bool Pop(Event* event) {
    Event oldest{};
    {
      std::lock_guard lock(mutex_);
      if (events_.empty()) return false;
      oldest = std::move(events_.front());
      events_.pop_front();
      if (events_.empty()) Clear();
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
    if (events_.empty()) Clear();
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return events_.size();
  }
  int fd() const { return event_.get(); }

 private:
  void Set() {
    const uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof(one));  // EAGAIN: readable already.
  }
  void Clear() {
    uint64_t count;
    (void)!read(event_.get(), &count, sizeof(count));
  }

  const UniqueFd event_;
  std::mutex mutex_;
  std::deque<Event> events_;
};

}  // namespace verbena
