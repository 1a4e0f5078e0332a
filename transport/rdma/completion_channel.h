// SPDX-License-Identifier: Apache-2.0
//
// A completion channel of verbs, non-blocking, with a descriptor of our own for completions that
// the device layer makes. Events are acknowledged as they are taken, in one call for each run of
// the same queue, so that no queue's destruction waits for them.
//
// Threads: Drain by one at a time; the descriptor may be watched by any.
// Sources: ibv_create_comp_channel(3), ibv_get_cq_event(3), ibv_ack_cq_events(3).

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "verbena/base/unique_fd.h"
#include "verbena/transport/completion_queue.h"
#include "verbena/transport/rdma/handles.h"

namespace verbena::rdma {

class RdmaCompletionChannel final : public CompletionChannel {
 public:
  static absl::StatusOr<std::unique_ptr<RdmaCompletionChannel>> Create(ibv_context* context);

  int fd() const override { return epoll_.get(); }
  void Drain() override;
  // Makes fd() readable until Drain.
  void Signal();
  ibv_comp_channel* handle() const { return channel_.get(); }

 private:
  RdmaCompletionChannel(ChannelHandle channel, UniqueFd event, UniqueFd epoll)
      : channel_(std::move(channel)), event_(std::move(event)), epoll_(std::move(epoll)) {}

  const ChannelHandle channel_;
  const UniqueFd event_;
  const UniqueFd epoll_;  // Over the two.
};

}  // namespace verbena::rdma
