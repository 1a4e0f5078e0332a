// SPDX-License-Identifier: Apache-2.0
//
// Connecting queue pairs by address, with private data in both directions: librdmacm's model.
//
// A ConnectionManager is an event channel. Nothing here blocks: what was asked for ends in exactly
// one event. A request that arrived on one manager may be accepted on another, whose events then
// tell of that connection (rdma_migrate_id(3)); that is how a server spreads connections over its
// pollers.
//
// Threads: one thread at a time per manager; the event descriptor may be watched by another.
// Sources: rdma_cm(7), rdma_connect(3), rdma_accept(3), rdma_reject(3), rdma_get_cm_event(3).

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/address.h"

namespace verbena {

class QueuePair;

// InfiniBand's connection request leaves 56 bytes of private data to the user (rdma_connect(3)).
inline constexpr size_t kPrivateDataBytesMax = 56;

// Private data as a value. The wire may pad it with zeros to its own size.
struct PrivateData {
  std::array<std::byte, kPrivateDataBytesMax> bytes{};
  size_t size = 0;
  std::span<const std::byte> span() const { return {bytes.data(), size}; }
};

struct ConnectOptions {
  PrivateData private_data;
  // How often a send is tried again when the receiver was not ready; 7 means for ever.
  uint8_t receiver_not_ready_retries = 7;
  // What we ask of the peer's retries when our receive queue is empty: the 5-bit code of
  // InfiniBand specification table 45; 12 is 0.64 ms. Never left at 0, which means 655 ms.
  uint8_t receiver_not_ready_timer = 12;
  // What a NIC does about a packet that nobody acknowledges: it waits 4.096 us x 2^n (up to four
  // times that, says InfiniBand specification vol. 1, 9.7.6.1.3) and sends it again, so often at the
  // most. 14 and 6 end after half a second to two, with kRetryExceeded. At most 31 and 7; Soft-RoCE
  // takes 7 for "for ever". Devices without packets have no use for them.
  uint8_t acknowledgement_timeout = 14;
  uint8_t retries = 6;
  // Connect only: a time after which the event is kUnreachable.
  std::chrono::milliseconds timeout{2000};
};

// A connection request that waits for Accept or Reject. Destroying it rejects.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;
  virtual const PrivateData& private_data() const = 0;
};

// Destroying it stops listening and frees the address.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual const Address& address() const = 0;  // As bound: a port of 0 has become a real one.
};

struct ConnectionEvent {
  enum class Type {
    kConnectRequest,  // `request`
    kEstablished,     // `queue_pair` is ready to send; `private_data` is the peer's
    kRejected,        // by the peer, `private_data` says why; or nobody listens (`status`)
    kUnreachable,     // no answer in time
    kDisconnected,    // the peer left, was killed, or called Disconnect; the pair is in kError
  };
  Type type;
  QueuePair* queue_pair = nullptr;  // Null for kConnectRequest.
  std::unique_ptr<ConnectionRequest> request;
  PrivateData private_data;
  // Why, with what to do next; OK for kConnectRequest and kEstablished.
  absl::Status status;
};

class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;

  // Errors: INVALID_ARGUMENT (an address this device does not serve), ALREADY_EXISTS (in use),
  // RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const Address& address) = 0;

  // Ends in kEstablished, kRejected or kUnreachable. `queue_pair` is in kInit, may have receives
  // posted, and must live until the event or its own destruction, which cancels.
  virtual absl::Status Connect(QueuePair& queue_pair, const Address& address,
                               const ConnectOptions& options) = 0;

  // Ends in kEstablished or kDisconnected on this manager. Post the receives first. Errors:
  // CANCELLED (the client has given up meanwhile, if that shows already; no fault of anyone),
  // UNAVAILABLE.
  virtual absl::Status Accept(std::unique_ptr<ConnectionRequest> request, QueuePair& queue_pair,
                              const ConnectOptions& options) = 0;
  virtual absl::Status Reject(std::unique_ptr<ConnectionRequest> request,
                              const PrivateData& reason) = 0;

  // Moves the pair to kError and tells the peer, who gets kDisconnected. No event here.
  virtual void Disconnect(QueuePair& queue_pair) = 0;

  // Takes the oldest event, if any. No event names a queue pair that was destroyed.
  virtual bool PollEvent(ConnectionEvent* event) = 0;
  // Readable while events wait. Owned by the manager.
  virtual int fd() const = 0;
};

}  // namespace verbena
