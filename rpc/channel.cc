// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/channel.h"

#include <utility>

#include "verbena/rpc/client_connection.h"

namespace verbena {

Channel::Channel(std::unique_ptr<ClientConnection> connection)
    : connection_(std::move(connection)) {}

Channel::~Channel() = default;

const std::string& Channel::target() const { return connection_->target(); }

absl::Status Channel::WaitForConnected(std::chrono::milliseconds timeout) {
  return connection_->WaitForConnected(timeout);
}

ChannelStatistics Channel::statistics() const { return connection_->statistics(); }

MessageMemory& Channel::message_memory() { return *connection_; }

std::shared_ptr<Channel> CreateChannel(std::string_view target, ChannelOptions options) {
  return std::shared_ptr<Channel>(
      new Channel(std::make_unique<ClientConnection>(target, std::move(options))));
}

}  // namespace verbena
