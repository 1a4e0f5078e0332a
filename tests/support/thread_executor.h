// SPDX-License-Identifier: Apache-2.0
//
// An executor of a few threads with a bounded queue, as a user would bring one.

#pragma once

#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "verbena/rpc/executor.h"

namespace verbena {

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int threads, size_t queue_max = 10'000) : queue_max_(queue_max) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  // Runs what is queued first.
  ~ThreadExecutor() override {
    {
      absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }

  bool Execute(void (*function)(void*), void* argument) override {
    absl::MutexLock lock(&mutex_);
    if (queue_.size() >= queue_max_) return false;
    queue_.emplace_back(function, argument);
    return true;
  }

 private:
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !queue_.empty(); }
  void Run() {
    while (true) {
      std::pair<void (*)(void*), void*> work;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &ThreadExecutor::Ready));
        if (queue_.empty()) return;
        work = queue_.front();
        queue_.pop_front();
      }
      work.first(work.second);
    }
  }

  const size_t queue_max_;
  absl::Mutex mutex_;
  std::deque<std::pair<void (*)(void*), void*>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace verbena
