// SPDX-License-Identifier: Apache-2.0
//
// Ends this process with a message when a measurement takes far longer than it was asked to, so
// that a server that hangs can't hang a script. Lifetime: the bound holds while the object lives.
// Threads: one of its own, which sleeps.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace verbena::bench {

class RunBound {
 public:
  explicit RunBound(std::chrono::duration<double> bound);
  ~RunBound();
  RunBound(const RunBound&) = delete;
  RunBound& operator=(const RunBound&) = delete;

 private:
  void Watch(std::chrono::duration<double> bound);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace verbena::bench
