// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/background_worker.h"

#include <pthread.h>

#include <utility>

namespace verbena {

BackgroundWorker::~BackgroundWorker() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BackgroundWorker::Run(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  changed_.notify_one();
}

void BackgroundWorker::Loop() {
  pthread_setname_np(pthread_self(), "verbena-worker");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // What it holds may be slow to let go of, too.
    lock.lock();
  }
}

}  // namespace verbena
