// SPDX-License-Identifier: Apache-2.0
//
// An executor of a few threads with a bounded queue, as a user would bring one.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  bool Execute(void (*function)(void*), void* argument) override {
    {
      std::lock_guard lock(mutex_);
      if (queue_.size() >= queue_max_) return false;
      queue_.emplace_back(function, argument);
    }
    changed_.notify_one();
    return true;
  }

 private:
  void Run() {
    while (true) {
      std::pair<void (*)(void*), void*> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) return;
        work = queue_.front();
        queue_.pop_front();
      }
      work.first(work.second);
    }
  }

  const size_t queue_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<void (*)(void*), void*>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace verbena
