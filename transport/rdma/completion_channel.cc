// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/completion_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "verbena/transport/rdma/errors.h"

namespace verbena::rdma {

absl::StatusOr<std::unique_ptr<RdmaCompletionChannel>> RdmaCompletionChannel::Create(
    ibv_context* context) {
  ChannelHandle channel(ibv_create_comp_channel(context));
  if (channel == nullptr) return CreationError("ibv_create_comp_channel", errno);
  const int flags = fcntl(channel->fd, F_GETFL);
  if (fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) return CreationError("fcntl", errno);
  UniqueFd event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!event || !epoll) return CreationError("eventfd, epoll", errno);
  for (const int fd : {channel->fd, event.get()}) {
    epoll_event watched{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &watched) != 0) {
      return CreationError("epoll_ctl", errno);
    }
  }
  return std::unique_ptr<RdmaCompletionChannel>(
      new RdmaCompletionChannel(std::move(channel), std::move(event), std::move(epoll)));
}

void RdmaCompletionChannel::Signal() {
  const uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof(one));
}

void RdmaCompletionChannel::Drain() {
  ibv_cq* last = nullptr;
  unsigned count = 0;
  ibv_cq* queue = nullptr;
  void* owner = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &owner) == 0) {
    if (queue != last && count > 0) {
      ibv_ack_cq_events(last, count);
      count = 0;
    }
    last = queue;
    ++count;
  }
  if (count > 0) ibv_ack_cq_events(last, count);
  uint64_t signals;
  (void)!read(event_.get(), &signals, sizeof(signals));
}

}  // namespace verbena::rdma
