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

  // For the call's implementation.
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
};

}  // namespace verbena
