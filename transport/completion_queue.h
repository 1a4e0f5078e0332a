// SPDX-License-Identifier: Apache-2.0
//
// Completion queues, and the completion channel on which a thread sleeps until one has work.
//
// Threads: a completion queue and all queue pairs attached to it are used by one thread at a time
// (the poller's); the device takes no lock on the data path. A channel may be waited on by another
// thread through its file descriptor.
//
// Sources: ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3), ibv_get_cq_event(3).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "verbena/transport/work_request.h"

namespace verbena {

// Sleeping without losing a wake-up: Poll until empty, Arm, Poll once more, then wait for fd() to
// be readable; afterwards Drain and Poll.
class CompletionChannel {
 public:
  virtual ~CompletionChannel() = default;
  // Becomes readable when an armed queue of this channel gets a completion. Owned by the channel.
  virtual int fd() const = 0;
  // Takes and acknowledges all pending events. Spurious calls are harmless.
  virtual void Drain() = 0;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;

  // Moves up to completions.size() entries to the front of `completions`, oldest first per queue
  // pair, and returns how many. Never blocks, makes no system call, copies no payload but the
  // small ones that travelled inside the completion entry. Finding nothing it may pause for some
  // nanoseconds, as suits a loop that waits for this device. Also moves forward sends that wait for
  // a receiver that was not ready, so a queue with work outstanding must be polled.
  virtual size_t Poll(std::span<WorkCompletion> completions) = 0;

  // Asks for one event on the channel at the next completion (or the next solicited one). An error
  // completion always makes an event. Errors: FAILED_PRECONDITION without a channel.
  virtual absl::Status Arm(bool solicited_only) = 0;

  // Entries it can hold. The sum of the depths of all queues attached never exceeds this: a queue
  // pair that would overflow it is refused at creation.
  virtual uint32_t depth() const = 0;

  // OK until the device said that it or this queue is broken (IBV_EVENT_CQ_ERR,
  // IBV_EVENT_DEVICE_FATAL); then why, for ever: no completion may come any more, not even a
  // flushed one. Cheap: a poller asks every 100 us.
  virtual absl::Status status() const { return absl::OkStatus(); }
};

}  // namespace verbena
