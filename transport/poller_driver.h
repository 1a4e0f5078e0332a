// SPDX-License-Identifier: Apache-2.0
//
// PollerDriver: decides which thread drives a poller, and how it waits when there is nothing to
// do.
//
// Exactly one thread at a time holds the poller. A server's poller has a thread of its own that
// holds it for good (kDedicated). A channel's poller (kShared) is driven by whoever waits for a
// call, because a second thread between the caller and the device would double the latency; a
// background thread takes over when calls are outstanding and no caller is driving, and sleeps
// otherwise.
//
//   holder_      may become                     who
//   kNobody      kRunning, kBackground          any thread (TryHold)
//   kRunning     kSleeping, kNobody             the holder (Sleep, Release)
//   kBackground  kNobody                        the background thread of a shared poller
//   kSleeping    kRunning                       the holder, woken by a descriptor or a bound
//
// No wake-up is lost: a holder that goes to sleep, or lets go, first publishes the new state, then
// fences, then looks for submitted tasks again; Submit pushes, then fences, then looks at the
// state.
//
// Threads: any for Submit, Run* and the constructor; the destructor joins the thread.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "verbena/base/cycle_clock.h"
#include "verbena/base/unique_fd.h"
#include "verbena/transport/poll_options.h"
#include "verbena/transport/poller.h"

namespace verbena {

class PollerDriver {
 public:
  enum class Kind { kDedicated, kShared };

  // Starts the thread. `cpu` >= 0 pins it. `poller` must outlive the driver.
  PollerDriver(Poller& poller, const PollOptions& options, Kind kind, int cpu = -1);
  // Joins the thread. The caller then owns the poller.
  ~PollerDriver();
  PollerDriver(const PollerDriver&) = delete;
  PollerDriver& operator=(const PollerDriver&) = delete;

  // Stops the thread after its present step; idempotent.
  void Stop();
  // Stops and joins the thread; the caller then owns the poller. An owner whose callbacks use the
  // driver calls this first: unique_ptr::reset forgets the driver before it destroys it.
  void Join();

  // Runs `task` on the poller's thread, soon. Waits while the queue is full. Any thread.
  void Submit(PollerTask task);

  // kShared: takes the poller for the calling thread, if nobody has it or the background thread
  // can give it up within a few microseconds. Then Drive, then Release.
  bool TryHold();
  // Steps until `done()` is true. The caller holds the poller.
  template <class Done>
  void Drive(Done&& done);
  void Release();

  // Whether the calling thread holds this poller now: from here a blocking wait would never end.
  bool HeldByThisThread() const;

  // Calls in flight: while there are any, somebody drives. Holder only.
  void AddOutstanding(int32_t change) { outstanding_ += change; }

 private:
  enum class Holder : uint32_t { kNobody, kRunning, kBackground, kSleeping };

  bool Acquire(Holder as);
  void LetGo();
  void Background();
  void BackgroundShared();
  void DriveInBackground();
  void Park();
  // Sleeps while holding the poller; `wake_fd` is what Submit writes to.
  template <class Done>
  void Sleep(Done& done);
  bool PrepareSleep();
  void SleepHolding();
  void SleepReleased();
  // Waits for the poller's descriptors and `wake_fd`.
  void WaitForEvents(const UniqueFd& wake_fd, int64_t bound_ns);

  Poller& poller_;
  const PollOptions options_;
  const Kind kind_;
  const CycleClock cycles_;
  const uint64_t spin_ticks_;
  UniqueFd holder_wake_fd_;      // Wakes a sleeping holder.
  UniqueFd background_wake_fd_;  // Wakes the background thread when nobody holds.

  std::atomic<Holder> holder_{Holder::kNobody};
  std::atomic<bool> stop_{false};
  // A task was pushed since somebody last took the poller. For those who have just let go of it
  // and may not look at the queue any more.
  std::atomic<bool> submitted_{false};
  // Threads inside Submit. A task may have run, and what follows from it may destroy the driver,
  // before the thread that pushed it has looked whom to wake; Join waits for that.
  std::atomic<uint32_t> submitting_{0};
  std::atomic<uint32_t> callers_waiting_{0};
  // Changes with every TryHold: tells the background thread that callers are active.
  std::atomic<uint32_t> activity_{0};
  // Holder only.
  int32_t outstanding_ = 0;
  const PollerDriver* outer_held_ = nullptr;  // What the holder held before it took this one,
  const EndpointHost* outer_host_ = nullptr;  // and its current_endpoint_host.
  std::thread thread_;
};

// ---- Implementation of the loop, inline because it is the data path ----

template <class Done>
void PollerDriver::Drive(Done&& done) {
  // Idle steps between two looks at the counter.
  constexpr uint32_t kStepsPerLook = 4;
  uint32_t idle_steps = 0;
  uint64_t idle_since = 0;
  while (!done()) {
    if (poller_.RunOnce() > 0) {
      idle_steps = 0;
      idle_since = 0;
      continue;
    }
    if (options_.mode == PollOptions::Mode::kBusy) continue;
    if (options_.mode == PollOptions::Mode::kAdaptive) {
      if (++idle_steps % kStepsPerLook != 0) continue;
      const uint64_t now = cycles_.ReadTicks();
      if (idle_since == 0) idle_since = now;
      if (now - idle_since < spin_ticks_) continue;
    }
    Sleep(done);
    idle_steps = 0;
    idle_since = 0;
  }
}

template <class Done>
void PollerDriver::Sleep(Done& done) {
  if (!PrepareSleep() || done()) {
    holder_.store(Holder::kRunning, std::memory_order_relaxed);
    return;
  }
  SleepHolding();
}

}  // namespace verbena
