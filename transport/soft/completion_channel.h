// SPDX-License-Identifier: Apache-2.0
//
// A completion channel is an epoll descriptor over the eventfds that peers write, one per queue
// pair, and one of our own for completions that are made in this process. The eventfds are watched
// edge-triggered, so nobody has to read them: taking the events from epoll acknowledges them.
//
// Threads: any.

#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/completion_queue.h"
#include "verbena/transport/soft/shared_memory.h"

namespace verbena::soft {

class SoftCompletionChannel final : public CompletionChannel {
 public:
  static absl::StatusOr<std::unique_ptr<SoftCompletionChannel>> Create();

  int fd() const override { return epoll_.get(); }
  void Drain() override;

  // Watches an eventfd of a queue pair until Unwatch. Errors: RESOURCE_EXHAUSTED.
  absl::Status Watch(int event_fd);
  void Unwatch(int event_fd);

  // Makes fd() readable.
  void Signal() { SignalEvent(local_event_.get()); }

 private:
  SoftCompletionChannel() = default;

  UniqueFd epoll_;
  UniqueFd local_event_;
};

}  // namespace verbena::soft
