// SPDX-License-Identifier: Apache-2.0
//
// What a caller says of one call: its deadline, and that it is cancelled.
//
// Lifetime: must live until the call has ended; serves one call. Threads: set everything before
// the call starts; TryCancel from any thread while the context lives.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "verbena/rpc/attachment.h"

namespace verbena {

class ClientContext {
 public:
  static constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

  ClientContext() = default;
  ClientContext(const ClientContext&) = delete;
  ClientContext& operator=(const ClientContext&) = delete;

  // The call ends DEADLINE_EXCEEDED at this time, whatever the server does. The server is told
  // the time that is left and stops caring for the call then, too. Without one a call waits as
  // long as the connection lives.
  template <class Clock, class Duration>
  void set_deadline(std::chrono::time_point<Clock, Duration> deadline) {
    const auto now = Clock::now();
    // The difference to time_point::min() or to a coarse max() does not fit in a duration.
    const double seconds =
        SecondsOf(deadline.time_since_epoch()) - SecondsOf(now.time_since_epoch());
    if (seconds > 0 && seconds < kSecondsMax) {
      SetTimeout(deadline - now);
    } else {
      SetTimeout(std::chrono::duration<double>(seconds));
    }
  }
  template <class Rep, class Period>
  void set_timeout(std::chrono::duration<Rep, Period> timeout) {
    SetTimeout(timeout);
  }

  // Ends the call CANCELLED within some 5 ms, and tells the server so. A call that has not started
  // yet will not; one that has ended is left alone.
  void TryCancel() { cancelled_.store(true, std::memory_order_release); }

  // Sends `buffer` with the request, beside the message; the handler finds them in this order
  // (ServerContext::attachments). Nothing is copied, unless request and attachments are so short
  // that they go together in a slot. Leave the memory alone until the call has ended.
  void AddAttachment(Buffer buffer) { attachments_.push_back({std::move(buffer), 0}); }
  // What the handler attached to its response, once the call has ended OK. Shares the memory where
  // the device put it.
  const AttachmentList& response_attachments() const { return response_attachments_; }

  // How many bytes the response may have in all, message and attachments. With that said, memory
  // for it travels in the request, and a response that is too long for a slot costs no extra round
  // trip. A longer one comes all the same.
  void set_response_bytes_max(uint64_t bytes) { response_bytes_max_ = bytes; }

  // Where what travels outside of the response's message (attachments, and fields placed as payload)
  // is to be, one behind the other; the Buffers then refer to this memory. It must live until the
  // last of them is gone. Costs a copy out of the memory where it landed: the device can't be kept
  // from writing after a deadline but there. What does not fit any more stays where it landed.
  void set_response_memory(std::span<std::byte> memory) { response_memory_ = memory; }

  // For the call's implementation.
  const AttachmentList& attachments() const { return attachments_; }
  uint64_t response_bytes_max() const { return response_bytes_max_; }
  std::span<std::byte> response_memory() const { return response_memory_; }
  AttachmentList* mutable_response_attachments() { return &response_attachments_; }
  int64_t deadline_ns() const { return deadline_ns_; }  // std::chrono::steady_clock.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  static constexpr double kSecondsMax = 100.0 * 365 * 24 * 3600;  // More is no deadline.

  template <class Rep, class Period>
  void SetTimeout(std::chrono::duration<Rep, Period> timeout) {
    // Compared as floating point, because hours::max() does not fit in nanoseconds.
    const double seconds = SecondsOf(timeout);
    if (seconds > kSecondsMax) {
      deadline_ns_ = kNoDeadline;
      return;
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    deadline_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    // Otherwise it has passed (or is not a number), however long ago.
    if (seconds > 0) {
      deadline_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
    }
  }
  template <class Rep, class Period>
  static constexpr double SecondsOf(std::chrono::duration<Rep, Period> duration) {
    return std::chrono::duration<double>(duration).count();
  }

  int64_t deadline_ns_ = kNoDeadline;
  std::atomic<bool> cancelled_{false};
  AttachmentList attachments_;
  AttachmentList response_attachments_;
  uint64_t response_bytes_max_ = 0;
  std::span<std::byte> response_memory_;
};

}  // namespace verbena
