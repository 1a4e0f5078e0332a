// SPDX-License-Identifier: Apache-2.0
//
// BackgroundWorker: a thread for what is too slow for a poller, such as registering memory. The
// thread starts with the first piece of work.
//
// Threads: any. The destructor waits for the piece that runs and drops the rest.

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace verbena {

class BackgroundWorker {
 public:
  BackgroundWorker() = default;
  ~BackgroundWorker();
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;

  // In order, one at a time.
  void Run(std::function<void()> work);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // Guarded by mutex_, as is stop_.
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace verbena
