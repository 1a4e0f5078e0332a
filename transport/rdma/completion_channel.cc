// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/completion_channel.h"

#include <errno.h>

#include <utility>

#include "verbena/base/event_fd.h"
#include "verbena/transport/rdma/descriptors.h"
#include "verbena/transport/rdma/errors.h"

namespace verbena::rdma {

absl::StatusOr<std::unique_ptr<RdmaCompletionChannel>> RdmaCompletionChannel::Create(
    ibv_context* context) {
  ChannelHandle channel(ibv_create_comp_channel(context));
  if (channel == nullptr) return CreationError("ibv_create_comp_channel", errno);
  if (!MakeNonBlocking(channel->fd)) return CreationError("fcntl", errno);
  UniqueFd event = MakeEventFd();
  UniqueFd epoll = EpollOver({channel->fd, event.get()});
  if (!event || !epoll) return CreationError("eventfd, epoll", errno);
  return std::unique_ptr<RdmaCompletionChannel>(
      new RdmaCompletionChannel(std::move(channel), std::move(event), std::move(epoll)));
}

void RdmaCompletionChannel::Signal() { SignalEventFd(event_.get()); }

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
  ClearEventFd(event_.get());
}

}  // namespace verbena::rdma
