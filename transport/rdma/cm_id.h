// SPDX-License-Identifier: Apache-2.0
//
// librdmacm's ids and events as values.
//
// Threads: an id belongs to whoever holds it; its event channel lives as long as any id on it.
// Sources: rdma_create_id(3), rdma_get_cm_event(3), rdma_migrate_id(3).

#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "verbena/transport/connection_manager.h"
#include "verbena/transport/rdma/handles.h"

namespace verbena::rdma {

// An event channel, non-blocking. Errors: UNAVAILABLE (no rdma_ucm module, no permission).
using EventChannel = std::shared_ptr<rdma_event_channel>;
absl::StatusOr<EventChannel> MakeEventChannel();

class CmId {
 public:
  CmId() = default;
  static absl::StatusOr<CmId> Create(EventChannel channel);
  // Takes over an id that an event of `channel` brought.
  CmId(rdma_cm_id* id, EventChannel channel) : channel_(std::move(channel)), id_(id) {}

  rdma_cm_id* get() const { return id_.get(); }
  rdma_cm_id* operator->() const { return id_.get(); }
  explicit operator bool() const { return id_ != nullptr; }
  const EventChannel& channel() const { return channel_; }
  // "mlx5_0"; empty while no address is resolved.
  std::string device() const;
  // Later events come on `channel`. Errors: UNAVAILABLE.
  absl::Status MigrateTo(EventChannel channel);

 private:
  EventChannel channel_;  // Goes after the id.
  IdHandle id_;
};

// A copy of an event, which is acknowledged already: no id's destruction waits for it.
struct CmEvent {
  rdma_cm_event_type type;
  rdma_cm_id* id = nullptr;  // Perhaps destroyed meanwhile: to be compared, not to be used.
  int status = 0;            // A negative errno, or the reason of a rejection.
  PrivateData private_data{};
  // What the peer offers, as rdma_conn_param.
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
};

// Takes the oldest event; false when there is none. One system call and no allocation then.
bool TakeEvent(rdma_event_channel& channel, CmEvent* event);

// Whether the peer's program rejected the connection, whose private data then says why.
bool IsRejectedByUser(const CmEvent& event);

// What went wrong with a connection, in words, by the event that told it.
absl::Status EventError(const CmEvent& event);

}  // namespace verbena::rdma
