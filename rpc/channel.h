// SPDX-License-Identifier: Apache-2.0
//
// A channel: a client's connection to one server, made when first needed and made again after it
// broke.
//
// Threads: any; calls may be made from any thread. Lifetime: shared; stubs hold a reference. The
// last reference ends the connection: calls in flight end CANCELLED before the destructor returns,
// so it must not be dropped inside a callback of the channel itself.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "verbena/transport/device.h"
#include "verbena/transport/endpoint_options.h"
#include "verbena/transport/poll_options.h"

namespace verbena {

class ClientConnection;
class MessageMemory;

struct ChannelOptions {
  // Devices to choose from, by the address's scheme; they must outlive the channel. Empty: the
  // channel makes its own software device.
  std::vector<Device*> devices;
  EndpointOptions endpoint;
  PollOptions poll;
  // A connection attempt that takes longer ends UNAVAILABLE.
  std::chrono::milliseconds connect_timeout{2000};
  // After a failed attempt, calls fail at once for this long (doubling up to the maximum, with
  // jitter), then the next call tries again.
  std::chrono::milliseconds reconnect_backoff_min{20};
  std::chrono::milliseconds reconnect_backoff_max{5000};
  // Calls of one channel that may be in flight at once; one more gets RESOURCE_EXHAUSTED.
  // At most 4096. Each costs about 200 bytes.
  uint32_t outstanding_calls_max = 1024;
};

// Since creation.
struct ChannelStatistics {
  uint64_t calls_started = 0;
  uint64_t calls_ok = 0;
  uint64_t calls_failed = 0;
  uint64_t connects = 0;            // Connections made,
  uint64_t disconnects = 0;         // and those of them that are over.
  uint64_t peers_lost = 0;          // Of these: ended by EndpointOptions::detection_time.
  uint64_t receiver_not_ready = 0;  // Must be 0: credits make it impossible.
  // Messages that went by RDMA WRITE. Bytes include what stands before and between attachments.
  uint64_t payload_bytes_sent = 0;
  uint64_t payload_bytes_received = 0;
  // Bytes that the library itself copied: attachments that were short enough for a slot, responses
  // into ClientContext::set_response_memory, what landed on devices without memory windows, and
  // FlatBuffers in the cases that flat_message.h lists.
  uint64_t payload_bytes_copied = 0;
  uint64_t payload_zones_asked = 0;  // Messages that waited a round trip for memory of the peer.
  // Registered for such messages, used or not, when the last of them came or went. Its limits are
  // EndpointOptions::payload_bytes_max and process_budget, which says itself what is in use.
  uint64_t payload_memory_bytes = 0;
};

class Channel {
 public:
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& target() const;
  // Connects if need be and waits until the channel is ready, or says why it is not.
  absl::Status WaitForConnected(std::chrono::milliseconds timeout);
  ChannelStatistics statistics() const;

  // For calls.
  ClientConnection& connection() { return *connection_; }
  // For what builds messages.
  MessageMemory& message_memory();

 private:
  friend std::shared_ptr<Channel> CreateChannel(std::string_view target, ChannelOptions options);
  explicit Channel(std::unique_ptr<ClientConnection> connection);
  std::unique_ptr<ClientConnection> connection_;
};

// Never fails and never blocks: what is wrong with `target` or the options is the status of every
// call made on the channel.
std::shared_ptr<Channel> CreateChannel(std::string_view target, ChannelOptions options = {});

}  // namespace verbena
