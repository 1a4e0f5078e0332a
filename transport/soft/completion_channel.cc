// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/completion_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace verbena::soft {

absl::StatusOr<std::unique_ptr<SoftCompletionChannel>> SoftCompletionChannel::Create() {
  std::unique_ptr<SoftCompletionChannel> channel(new SoftCompletionChannel);
  channel->epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!channel->epoll_.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll_create1: ", strerror(errno)));
  }
  absl::StatusOr<UniqueFd> event = CreateEvent();
  if (!event.ok()) return event.status();
  channel->local_event_ = *std::move(event);
  absl::Status watched = channel->Watch(channel->local_event_.get());
  if (!watched.ok()) return watched;
  return channel;
}

void SoftCompletionChannel::Drain() {
  std::array<epoll_event, 64> events;
  while (epoll_wait(epoll_.get(), events.data(), events.size(), 0) ==
         static_cast<int>(events.size())) {
  }
}

absl::Status SoftCompletionChannel::Watch(int event_fd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_fd, &event) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll_ctl: ", strerror(errno)));
  }
  return absl::OkStatus();
}

void SoftCompletionChannel::Unwatch(int event_fd) {
  // Explicitly: the peer holds the same eventfd, so that closing ours does not end the watch.
  PCHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, event_fd, nullptr) == 0) << event_fd;
}

}  // namespace verbena::soft
