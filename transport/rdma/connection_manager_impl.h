// SPDX-License-Identifier: Apache-2.0
//
// Connections by librdmacm, for queue pairs that librdmacm does not own: the pairs exist, with
// receives posted, before anybody connects them. librdmacm carries the messages and gives the
// attributes of each transition (rdma_init_qp_attr(3)); the transitions are made here.
//
//   active   attempt's thread: resolve, connect   -> here: INIT, RTR, RTS, rdma_establish
//   passive  here: INIT, RTR, RTS, rdma_accept    -> ESTABLISHED
//   iWARP    the kernel makes the transitions
//
// Threads: one at a time per manager. Lifetime: a manager may go before its queue pairs.
// Sources: rdma_cm(7), rdma_accept(3), rdma_establish(3), rdma_migrate_id(3).

#pragma once

#include <atomic>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "verbena/base/unique_fd.h"
#include "verbena/transport/connection_manager.h"
#include "verbena/transport/rdma/cm_id.h"
#include "verbena/transport/rdma/connect_attempt.h"

namespace verbena::rdma {

class RdmaDevice;
class RdmaQueuePair;

class RdmaConnectionRequest final : public ConnectionRequest {
 public:
  RdmaConnectionRequest(CmId id, const CmEvent& event) : id_(std::move(id)), event_(event) {}
  ~RdmaConnectionRequest() override;

  const PrivateData& private_data() const override { return event_.private_data; }
  const CmEvent& event() const { return event_; }
  const CmId& id() const { return id_; }
  // Once; afterwards the destruction rejects nothing.
  CmId Spend() { return std::move(id_); }

 private:
  CmId id_;
  const CmEvent event_;
};

class RdmaListener final : public Listener {
 public:
  RdmaListener(CmId id, const Address& address) : id_(std::move(id)), address_(address) {}
  const Address& address() const override { return address_; }

 private:
  const CmId id_;
  const Address address_;
};

class RdmaConnectionManager final : public ConnectionManager {
 public:
  static absl::StatusOr<std::unique_ptr<RdmaConnectionManager>> Create(RdmaDevice* device);
  ~RdmaConnectionManager() override;

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const Address& address) override;
  absl::Status Connect(QueuePair& queue_pair, const Address& address,
                       const ConnectOptions& options) override;
  absl::Status Accept(std::unique_ptr<ConnectionRequest> request, QueuePair& queue_pair,
                      const ConnectOptions& options) override;
  absl::Status Reject(std::unique_ptr<ConnectionRequest> request,
                      const PrivateData& reason) override;
  void Disconnect(QueuePair& queue_pair) override;
  bool PollEvent(ConnectionEvent* event) override;
  int fd() const override { return epoll_.get(); }

  // For the device's event thread: the event channel has something.
  void OnReadable();
  // The queue pair goes: ends its connection or attempt, and no event names it any more.
  void Forget(RdmaQueuePair* pair);
  // The peer sends already, and so is connected, though the connection manager's last message has
  // not come. If it is lost the peer's would be asked for it again after some 4 s only.
  void OnEarlyReceive(RdmaQueuePair* pair);

 private:
  struct Connection {
    std::unique_ptr<ConnectAttempt> attempt;  // While it connects.
    uint64_t ticket = 0;
    ConnectOptions options;
    CmId id;             // From the peer's answer, or the acceptance, on.
    bool ended = false;  // Told by an event, or asked for by Disconnect.
  };

  explicit RdmaConnectionManager(RdmaDevice* device) : device_(device) {}
  absl::Status Initialize();
  void Erase(RdmaQueuePair* pair);

  bool HandleResult(ConnectResult result, ConnectionEvent* event);
  bool HandleEvent(const CmEvent& taken, ConnectionEvent* event);
  bool HandleRequest(const CmEvent& taken, ConnectionEvent* event);
  absl::Status FinishConnect(RdmaQueuePair& pair, Connection& connection, ConnectResult& result);
  // INIT on the port of the route, ready to receive, ready to send.
  absl::Status MakeReady(RdmaQueuePair& pair, CmId& id, const ConnectOptions& options);

  RdmaDevice* const device_;
  EventChannel channel_;
  UniqueFd channel_event_;  // An eventfd, readable while the channel may have events.
  std::atomic<bool> channel_readable_{false};
  std::shared_ptr<ConnectResults> results_;
  UniqueFd epoll_;
  uint64_t last_ticket_ = 0;
  absl::flat_hash_map<RdmaQueuePair*, Connection> connections_;
};

}  // namespace verbena::rdma
