// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/poller_driver.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "glog/logging.h"
#include "verbena/base/cpu_relax.h"
#include "verbena/base/event_fd.h"

namespace verbena {
namespace {

// How long the background thread leaves callers alone before it looks whether they are done.
constexpr int64_t kParkNs = 10'000'000;
// How long a caller waits for the background thread to give up the poller: first spinning, then
// giving its core away in between, for that thread may be waiting for it. Without the second, a
// caller on the same core gives up before the other had a chance, in every call from then on, and
// each costs two context switches.
constexpr uint64_t kHandOverSpinNs = 20'000;
constexpr uint64_t kHandOverNs = 200'000;

// The driver that this thread holds and took last. A callback that makes a blocking call on another
// channel holds two at a time, and a chain of them more: the rest is in outer_held_.
thread_local const PollerDriver* held_driver = nullptr;

}  // namespace

PollerDriver::PollerDriver(Poller& poller, const PollOptions& options, Kind kind, int cpu)
    : poller_(poller),
      options_(options),
      kind_(kind),
      spin_ticks_(
          cycles_.NsToTicks(static_cast<uint64_t>(std::chrono::nanoseconds(options.spin).count()))),
      holder_wake_fd_(MakeEventFd()),
      background_wake_fd_(MakeEventFd()) {
  PCHECK(holder_wake_fd_.get() >= 0 && background_wake_fd_.get() >= 0) << "eventfd";
  poller_.set_submitter([this](PollerTask task) { Submit(task); });
  thread_ = std::thread([this, cpu] {
    pthread_setname_np(pthread_self(), "verbena-poller");
    if (cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpu, &set);
      if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        PLOG(WARNING) << "a poller could not be pinned to CPU " << cpu << " and runs anywhere";
      }
    }
    Background();
  });
}

PollerDriver::~PollerDriver() { Join(); }

void PollerDriver::Join() {
  Stop();
  poller_.set_submitter(nullptr);
  if (thread_.joinable()) thread_.join();
  while (submitting_.load(std::memory_order_acquire) != 0) sched_yield();
}

void PollerDriver::Stop() {
  stop_.store(true);
  SignalEventFd(holder_wake_fd_.get());
  SignalEventFd(background_wake_fd_.get());
}

void PollerDriver::Submit(PollerTask task) {
  submitting_.fetch_add(1, std::memory_order_relaxed);
  while (!poller_.Submit(task)) {
    SignalEventFd(background_wake_fd_.get());
    sched_yield();
  }
  submitted_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  switch (holder_.load(std::memory_order_relaxed)) {
    case Holder::kRunning:
    case Holder::kBackground:
      break;  // It will see the task, or look again when it lets go.
    case Holder::kSleeping:
      SignalEventFd(holder_wake_fd_.get());
      break;
    case Holder::kNobody:
      SignalEventFd(background_wake_fd_.get());
      break;
  }
  submitting_.fetch_sub(1, std::memory_order_release);  // The last look at this object.
}

bool PollerDriver::HeldByThisThread() const {
  for (const PollerDriver* held = held_driver; held != nullptr; held = held->outer_held_) {
    if (held == this) return true;
  }
  return false;
}

bool PollerDriver::Acquire(Holder as) {
  Holder nobody = Holder::kNobody;
  if (holder_.load(std::memory_order_relaxed) != nobody ||
      !holder_.compare_exchange_strong(nobody, as, std::memory_order_acquire)) {
    return false;
  }
  // Before the queue is looked at, so that a push that comes later is seen by the next LetGo.
  if (submitted_.load(std::memory_order_relaxed)) submitted_.store(false);
  outer_held_ = held_driver;
  held_driver = this;
  outer_host_ = current_endpoint_host;
  current_endpoint_host = poller_.endpoint_host();
  return true;
}

void PollerDriver::LetGo() {
  held_driver = outer_held_;
  current_endpoint_host = outer_host_;
  holder_.store(Holder::kNobody, std::memory_order_release);
  // A full fence between the store above and the look at submitted_; see the header.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool PollerDriver::TryHold() {
  DCHECK(kind_ == Kind::kShared);
  // A plain add would need a locked instruction; a lost count is no harm.
  activity_.store(activity_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (Acquire(Holder::kRunning)) return true;
  if (holder_.load(std::memory_order_relaxed) != Holder::kBackground) return false;
  callers_waiting_.fetch_add(1);
  const uint64_t start = cycles_.ReadTicks();
  const uint64_t spin_ticks = cycles_.NsToTicks(kHandOverSpinNs);
  const uint64_t give_up_ticks = cycles_.NsToTicks(kHandOverNs);
  bool held = false;
  while (!(held = Acquire(Holder::kRunning))) {
    const uint64_t waited = cycles_.ReadTicks() - start;
    if (waited >= give_up_ticks) break;
    if (waited < spin_ticks) {
      CpuRelax();
    } else {
      sched_yield();
    }
  }
  callers_waiting_.fetch_sub(1);
  return held;
}

void PollerDriver::Release() {
  const bool work_left = outstanding_ > 0;
  LetGo();
  if (work_left || submitted_.load(std::memory_order_relaxed))
    SignalEventFd(background_wake_fd_.get());
}

// ---- The thread ----

void PollerDriver::Background() {
  if (kind_ == Kind::kShared) {
    BackgroundShared();
    return;
  }
  CHECK(Acquire(Holder::kRunning));
  Drive([this] { return stop_.load(std::memory_order_relaxed); });
  Release();
}

void PollerDriver::BackgroundShared() {
  uint32_t seen = activity_.load(std::memory_order_relaxed);
  while (!stop_.load(std::memory_order_relaxed)) {
    if (!Acquire(Holder::kBackground)) {
      Park();
      continue;
    }
    DriveInBackground();
    const uint32_t now = activity_.load(std::memory_order_relaxed);
    if (callers_waiting_.load() > 0 || now != seen) {
      // Callers come and go: arming would make the peer signal us for nothing.
      seen = now;
      Release();
      Park();
    } else {
      SleepReleased();
    }
  }
}

// Until nothing is outstanding or a caller wants the poller; spins as the options say.
void PollerDriver::DriveInBackground() {
  poller_.Woken();
  poller_.RunOnce();
  uint64_t idle_since = cycles_.ReadTicks();
  while (!stop_.load(std::memory_order_relaxed) &&
         callers_waiting_.load(std::memory_order_relaxed) == 0) {
    if (poller_.RunOnce() > 0) {
      idle_since = cycles_.ReadTicks();
      continue;
    }
    if (outstanding_ == 0 && !poller_.HasTasks()) return;
    if (options_.mode == PollOptions::Mode::kBusy) continue;
    if (options_.mode == PollOptions::Mode::kAdaptive &&
        cycles_.ReadTicks() - idle_since < spin_ticks_) {
      continue;
    }
    return;
  }
}

void PollerDriver::Park() {
  pollfd fd{background_wake_fd_.get(), POLLIN, 0};
  if (poll(&fd, 1, static_cast<int>(kParkNs / 1'000'000)) > 0) ClearEventFd(fd.fd);
}

// ---- Sleeping ----

// Publishes kSleeping and arms. False when there is work after all.
bool PollerDriver::PrepareSleep() {
  poller_.Arm();
  holder_.store(Holder::kSleeping, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return poller_.RunOnce() == 0 && !poller_.HasTasks();
}

void PollerDriver::SleepHolding() {
  WaitForEvents(holder_wake_fd_, poller_.SleepBoundNs());
  holder_.store(Holder::kRunning, std::memory_order_relaxed);
  poller_.Woken();
}

// The background thread's sleep: armed, and with the poller free for callers.
void PollerDriver::SleepReleased() {
  poller_.Arm();
  if (poller_.RunOnce() > 0 || poller_.HasTasks() || stop_.load()) {
    Release();
    return;
  }
  const int64_t bound_ns = poller_.SleepBoundNs();
  LetGo();
  if (submitted_.load(std::memory_order_relaxed)) return;
  WaitForEvents(background_wake_fd_, bound_ns);
}

void PollerDriver::WaitForEvents(const UniqueFd& wake_fd, int64_t bound_ns) {
  const auto [channel_fd, manager_fd] = poller_.fds();
  std::array<pollfd, 3> fds = {pollfd{wake_fd.get(), POLLIN, 0}, pollfd{channel_fd, POLLIN, 0},
                               pollfd{manager_fd, POLLIN, 0}};
  const timespec timeout = {.tv_sec = bound_ns / 1'000'000'000,
                            .tv_nsec = bound_ns % 1'000'000'000};
  ppoll(fds.data(), fds.size(), &timeout, nullptr);
  if ((fds[0].revents & POLLIN) != 0) ClearEventFd(wake_fd.get());
}

}  // namespace verbena
