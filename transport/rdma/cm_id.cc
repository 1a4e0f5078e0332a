// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/cm_id.h"

#include <errno.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/transport/rdma/descriptors.h"
#include "verbena/transport/rdma/errors.h"

namespace verbena::rdma {
namespace {

// Reasons of a rejection (InfiniBand specification vol. 1, table 110) that a user can do something
// about.
constexpr int kRejectedNoListener = 8;  // "invalid service id"
constexpr int kRejectedByUser = 28;     // "consumer defined"

}  // namespace

absl::StatusOr<EventChannel> MakeEventChannel() {
  errno = 0;
  EventChannelHandle channel(rdma_create_event_channel());
  if (channel == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no RDMA connection manager: load rdma_ucm (modprobe rdma_ucm), and give "
                     "/dev/infiniband/rdma_cm to the container; ",
                     Describe("rdma_create_event_channel", errno)));
  }
  if (!MakeNonBlocking(channel->fd)) return absl::UnavailableError(Describe("fcntl", errno));
  return EventChannel(channel.release(), EventChannelDestroyer());
}

absl::StatusOr<CmId> CmId::Create(EventChannel channel) {
  rdma_cm_id* id = nullptr;
  if (const int result = rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP); result != 0) {
    return absl::UnavailableError(Describe("rdma_create_id", ErrorOf(result)));
  }
  return CmId(id, std::move(channel));
}

std::string CmId::device() const {
  return id_->verbs == nullptr ? std::string() : ibv_get_device_name(id_->verbs->device);
}

absl::Status CmId::MigrateTo(EventChannel channel) {
  if (channel == channel_) return absl::OkStatus();
  if (const int result = rdma_migrate_id(id_.get(), channel.get()); result != 0) {
    return absl::UnavailableError(Describe("rdma_migrate_id", ErrorOf(result)));
  }
  channel_ = std::move(channel);
  return absl::OkStatus();
}

bool TakeEvent(rdma_event_channel& channel, CmEvent* event) {
  // rdma_get_cm_event allocates before it looks.
  pollfd waiting{.fd = channel.fd, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, /*timeout=*/0) != 1) return false;
  rdma_cm_event* taken = nullptr;
  if (rdma_get_cm_event(&channel, &taken) != 0) return false;
  *event = {.type = taken->event, .id = taken->id, .status = taken->status};
  const rdma_conn_param& conn = taken->param.conn;
  if (conn.private_data != nullptr) {
    event->private_data.size = std::min<size_t>(conn.private_data_len, kPrivateDataBytesMax);
    std::memcpy(event->private_data.bytes.data(), conn.private_data, event->private_data.size);
  }
  event->responder_resources = conn.responder_resources;
  event->initiator_depth = conn.initiator_depth;
  rdma_ack_cm_event(taken);
  return true;
}

bool IsRejectedByUser(const CmEvent& event) {
  return event.type == RDMA_CM_EVENT_REJECTED &&
         (event.status == kRejectedByUser || event.status == -ECONNRESET);
}

absl::Status EventError(const CmEvent& event) {
  const int error = event.status < 0 ? -event.status : 0;
  const std::string cause = Describe(rdma_event_str(event.type), error);
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return absl::UnavailableError(absl::StrCat(
          "no RDMA device is on the way to this address, or it does not answer; ", cause));
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return absl::UnavailableError(absl::StrCat("there is no RDMA route; ", cause));
    case RDMA_CM_EVENT_REJECTED:
      if (event.status == kRejectedNoListener || error == ECONNREFUSED) {
        return absl::UnavailableError(
            "nobody listens at this address and port: is the server up, and is it on RDMA?");
      }
      if (IsRejectedByUser(event)) {
        return absl::UnavailableError("the peer refused the connection");
      }
      return absl::UnavailableError(
          absl::StrCat("the connection was rejected, reason ", event.status));
    case RDMA_CM_EVENT_UNREACHABLE:
      return absl::UnavailableError(absl::StrCat("the peer does not answer; ", cause));
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return absl::UnavailableError("the RDMA device was removed");
    case RDMA_CM_EVENT_DISCONNECTED:
      return absl::UnavailableError("the peer disconnected, or its process ended");
    default:
      return absl::UnavailableError(absl::StrCat("no connection came about; ", cause));
  }
}

}  // namespace verbena::rdma
