// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/control_thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/completion_queue.h"
#include "verbena/transport/soft/constants.h"

namespace verbena::soft {

using std::chrono::steady_clock;

absl::StatusOr<std::unique_ptr<ControlThread>> ControlThread::Start(bool membarrier,
                                                                    AsyncEvents* events) {
  std::unique_ptr<ControlThread> control(new ControlThread(membarrier, events));
  control->epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!control->epoll_.valid()) {
    return absl::UnavailableError(absl::StrCat("epoll_create1: ", strerror(errno)));
  }
  absl::StatusOr<UniqueFd> wake = CreateEvent();
  if (!wake.ok()) return wake.status();
  control->wake_ = *std::move(wake);
  absl::Status watched = control->Watch(control->wake_.get(), 0, EPOLLIN);
  if (!watched.ok()) return watched;

  // Signals are the application's: its handlers do not run on our thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  control->thread_ = std::thread([raw = control.get()] { raw->Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(control->thread_.native_handle(), "verbena-soft");
  return control;
}

ControlThread::~ControlThread() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  Wake();
  thread_.join();
}

void ControlThread::Run() {
  std::array<epoll_event, 64> events;
  int timeout_ms = -1;
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
    PCHECK(count >= 0 || errno == EINTR);
    std::lock_guard lock(mutex_);
    if (stop_) return;
    for (int i = 0; i < count; ++i) HandleEvent(events[i].data.u64);

    const TimePoint now = steady_clock::now();
    const std::vector<uint64_t> attended(attended_.begin(), attended_.end());
    for (const uint64_t id : attended) {
      if (Link* link = Find(id); link != nullptr) Attend(*link, now);
    }
    for (auto& [id, listening] : listeners_) {
      if (listening.resume_at <= now) Pause(id, listening, false);
    }
    if (kick_at_ <= now) {
      kick_at_ = TimePoint::max();
      for (SoftCompletionQueue* queue : std::exchange(kicks_, {})) queue->WakeIfArmed(true);
    }
    timeout_ms = NextTimeoutMs(now);
  }
}

void ControlThread::HandleEvent(uint64_t id) {
  if (id == 0) {
    ClearEvent(wake_.get());
  } else if (auto listening = listeners_.find(id); listening != listeners_.end()) {
    AcceptSockets(id, listening->second);
  } else {
    ReadLink(id);
  }
}

void ControlThread::Attend(Link& link, TimePoint now) {
  if (now >= link.deadline) {
    const absl::string_view where =
        link.state == LinkState::kConnecting   ? "the server's queue of connections stayed full"
        : link.state == LinkState::kAwaitReply ? "the server did not answer"
                                               : "the client did not complete the handshake";
    EndLink(link, absl::DeadlineExceededError(absl::StrCat(where, " in time")), false);
    return;
  }
  if (link.state == LinkState::kConnecting) {
    TryConnect(link);
    return;
  }
  Flush(link);
}

int ControlThread::NextTimeoutMs(TimePoint now) const {
  TimePoint next = kick_at_;
  for (const uint64_t id : attended_) {
    const Link& link = *links_.at(id);
    next = std::min(next, link.deadline);
    if (link.state == LinkState::kConnecting || !link.outbox.empty()) {
      next = std::min(next, now + kTick);
    }
  }
  for (const auto& [id, listening] : listeners_) next = std::min(next, listening.resume_at);
  if (next == TimePoint::max()) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now);
  return static_cast<int>(std::max<int64_t>(wait.count(), 0));
}

void ControlThread::Wake() { SignalEvent(wake_.get()); }

absl::Status ControlThread::Watch(int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll_ctl: ", strerror(errno)));
  }
  return absl::OkStatus();
}

Link* ControlThread::Find(uint64_t id) {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : found->second.get();
}

Link& ControlThread::CreateLink(LinkState state) {
  auto link = std::make_unique<Link>();
  link->id = ++last_id_;
  link->state = state;
  Link& reference = *link;
  links_.emplace(reference.id, std::move(link));
  attended_.insert(reference.id);
  return reference;
}

void ControlThread::Erase(Link& link) {
  LeaveListener(link);
  attended_.erase(link.id);
  if (link.queue_pair != nullptr) link_of_.erase(link.queue_pair);
  links_.erase(link.id);  // Closes the socket, which also ends epoll's interest in it.
}

size_t ControlThread::LinkCount() {
  std::lock_guard lock(mutex_);
  return links_.size() + listeners_.size();
}

void ControlThread::RequestKick(SoftCompletionQueue* queue) {
  {
    std::lock_guard lock(mutex_);
    kicks_.insert(queue);
    if (kick_at_ != TimePoint::max()) return;
    kick_at_ = steady_clock::now() + kTick;
  }
  Wake();
}

void ControlThread::ForgetKick(SoftCompletionQueue* queue) {
  std::lock_guard lock(mutex_);
  kicks_.erase(queue);
}

}  // namespace verbena::soft
