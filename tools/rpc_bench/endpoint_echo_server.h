// SPDX-License-Identifier: Apache-2.0
//
// The server of --layer=endpoint: sends every frame back, without calls or Protobuf.
//
// Threads: Start and the destructor from one thread; a poller's thread of its own does the rest.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/base/clock.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/transport/poller.h"
#include "verbena/transport/poller_driver.h"

namespace verbena::bench {

class EndpointEchoServer {
 public:
  // Connections that it takes at once; one more is refused, and told why.
  static constexpr uint32_t kConnectionsMax = 8;

  // Listens at options.listen. `device` must outlive the server. Errors: those of listening.
  static absl::StatusOr<std::unique_ptr<EndpointEchoServer>> Start(Device& device,
                                                                   const Options& options);
  // Closes the connections; takes a second at most.
  ~EndpointEchoServer();
  EndpointEchoServer(const EndpointEchoServer&) = delete;
  EndpointEchoServer& operator=(const EndpointEchoServer&) = delete;

 private:
  class Connection;

  EndpointEchoServer() = default;
  void Accept(std::unique_ptr<ConnectionRequest> request);
  uint64_t ReceiverNotReady() const;

  const SystemClock clock_;
  std::string cores_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Connection>> connections_;  // Poller only, once it runs.
  std::unique_ptr<PollerDriver> driver_;
};

}  // namespace verbena::bench
