// SPDX-License-Identifier: Apache-2.0
//
// A server: listens, spreads connections over its pollers, runs handlers.
//
// Threads: any for the functions here; handlers run on the pollers or the executor.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/rpc/executor.h"
#include "verbena/rpc/service.h"
#include "verbena/transport/device.h"
#include "verbena/transport/endpoint_options.h"
#include "verbena/transport/poll_options.h"

namespace verbena {

class ServerRuntime;

// Since the start.
struct ServerStatistics {
  uint64_t connections = 0;  // Open now.
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;  // Wrong version, garbage, or over a limit.
  uint64_t calls_started = 0;
  uint64_t calls_in_flight = 0;  // Handlers running on the executor.
  uint64_t calls_deadline_exceeded = 0;
  uint64_t protocol_errors = 0;     // Connections closed for what the peer sent.
  uint64_t peers_lost = 0;          // Connections ended by EndpointOptions::detection_time.
  uint64_t receiver_not_ready = 0;  // Must be 0: credits make it impossible.
  // Messages that went by RDMA WRITE. Bytes include what stands before and between attachments.
  uint64_t payload_bytes_sent = 0;
  uint64_t payload_bytes_received = 0;
  // Bytes that the library itself copied: attachments that were short enough for a slot, responses
  // into ClientContext::set_response_memory, and what landed on devices without memory windows.
  uint64_t payload_bytes_copied = 0;
  uint64_t payload_zones_asked = 0;  // Messages that waited a round trip for memory of the peer.
  // Registered for such messages, used or not, when the last of them came or went. Its limits are
  // EndpointOptions::payload_bytes_max and process_budget, which says itself what is in use.
  uint64_t payload_memory_bytes = 0;
};

class Server {
 public:
  // Shuts down as Shutdown() does, if that was not done.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Stops listening, lets calls in flight finish until `grace` is over, cancels the rest, closes
  // the connections and joins the pollers. Needs no help from anyone, and returns within `grace`
  // plus the longest handler that ignores ServerContext::IsCancelled. Idempotent.
  void Shutdown(std::chrono::milliseconds grace = std::chrono::milliseconds(1000));
  // Waits until Shutdown is complete.
  void Wait();

  // The addresses it listens at, as bound.
  const std::vector<Address>& addresses() const;
  ServerStatistics statistics() const;

 private:
  friend class ServerBuilder;
  explicit Server(std::unique_ptr<ServerRuntime> runtime);
  std::unique_ptr<ServerRuntime> runtime_;
};

struct ServerOptions {
  std::vector<Device*> devices;  // As ChannelOptions::devices.
  std::vector<std::string> addresses;
  std::vector<Service*> services;
  Executor* executor = nullptr;  // Null: handlers run inline on the poller that received the call.
  EndpointOptions endpoint;
  PollOptions poll;
  uint32_t poller_count = 1;
  // CPU of each poller; empty leaves them to the kernel.
  std::vector<int> poller_cpus;
  uint32_t connections_max = 1024;  // One more is refused, and told why.
};

// Collects what a server needs. Errors show when it starts.
class ServerBuilder {
 public:
  ServerBuilder& AddListeningPort(std::string_view address) {
    options_.addresses.emplace_back(address);
    return *this;
  }
  // Borrowed: must outlive the server.
  ServerBuilder& RegisterService(Service* service) {
    options_.services.push_back(service);
    return *this;
  }
  // Borrowed. Handlers run there and no longer on the pollers.
  ServerBuilder& SetExecutor(Executor* executor) {
    options_.executor = executor;
    return *this;
  }
  ServerBuilder& AddDevice(Device* device) {
    options_.devices.push_back(device);
    return *this;
  }
  ServerOptions& options() { return options_; }

  // Listens and starts the pollers. Errors: INVALID_ARGUMENT (address, options, no service),
  // ALREADY_EXISTS (address in use, two methods of one name or identity), UNAVAILABLE (no device
  // serves the address, with what each said).
  absl::StatusOr<std::unique_ptr<Server>> BuildAndStart();

 private:
  ServerOptions options_;
};

}  // namespace verbena
