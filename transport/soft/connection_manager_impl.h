// SPDX-License-Identifier: Apache-2.0
//
// The connection manager's face to the application: a queue of events. The work is done by the
// control thread, which pushes them.
//
// Threads: as transport/connection_manager.h; Push and Purge from any.

#pragma once

#include <memory>

#include "verbena/transport/connection_manager.h"
#include "verbena/transport/soft/async_events.h"

namespace verbena::soft {

class ControlThread;

class SoftConnectionRequest final : public ConnectionRequest {
 public:
  SoftConnectionRequest(ControlThread* control, uint64_t link, const PrivateData& private_data)
      : control_(control), link_(link), private_data_(private_data) {}
  ~SoftConnectionRequest() override;

  const PrivateData& private_data() const override { return private_data_; }
  ControlThread* control() const { return control_; }
  // The link, once; afterwards the request is spent and its destruction rejects nothing.
  uint64_t Spend() { return std::exchange(link_, 0); }

 private:
  ControlThread* const control_;
  uint64_t link_;
  const PrivateData private_data_;
};

class SoftListener final : public Listener {
 public:
  SoftListener(ControlThread* control, uint64_t id, const Address& address)
      : control_(control), id_(id), address_(address) {}
  ~SoftListener() override;
  const Address& address() const override { return address_; }

 private:
  ControlThread* const control_;
  const uint64_t id_;
  const Address address_;
};

class SoftConnectionManager final : public ConnectionManager {
 public:
  SoftConnectionManager(ControlThread* control, UniqueFd event);
  ~SoftConnectionManager() override;

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const Address& address) override;
  absl::Status Connect(QueuePair& queue_pair, const Address& address,
                       const ConnectOptions& options) override;
  absl::Status Accept(std::unique_ptr<ConnectionRequest> request, QueuePair& queue_pair,
                      const ConnectOptions& options) override;
  absl::Status Reject(std::unique_ptr<ConnectionRequest> request,
                      const PrivateData& reason) override;
  void Disconnect(QueuePair& queue_pair) override;
  bool PollEvent(ConnectionEvent* event) override { return events_.Pop(event); }
  int fd() const override { return events_.fd(); }

  void Push(ConnectionEvent event) { events_.Push(std::move(event)); }
  // Drops events that name the queue pair. Such events hold no request, so nothing is called back.
  void Purge(const QueuePair* queue_pair) {
    events_.EraseIf([&](const ConnectionEvent& event) { return event.queue_pair == queue_pair; });
  }

 private:
  ControlThread* const control_;
  EventQueue<ConnectionEvent> events_;
};

}  // namespace verbena::soft
