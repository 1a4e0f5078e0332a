// SPDX-License-Identifier: Apache-2.0
//
// A device: the door to one RDMA NIC, or to the software one. Each device folder has a factory.h
// that makes one; nothing else of the folder is included from outside.
//
// Threads: any. Lifetime: a device outlives everything made from it.
// Sources: ibv_open_device(3), ibv_create_comp_channel(3), ibv_get_async_event(3).

#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "verbena/transport/capabilities.h"
#include "verbena/transport/completion_queue.h"
#include "verbena/transport/connection_manager.h"
#include "verbena/transport/memory.h"
#include "verbena/transport/queue_pair.h"

namespace verbena {

// Something that no completion tells. Values of `enum ibv_event_type`.
struct AsyncEvent {
  enum class Type : uint32_t {
    kCompletionQueueError = 0,
    kQueuePairFatal = 1,
    kQueuePairRequestError = 2,  // The peer asked for something invalid; the pair is in kError.
    kQueuePairAccessError = 3,   // The peer used a key it may not; the pair is in kError.
    kDeviceFatal = 8,
    kPortActive = 9,
    kPortError = 10,
    kSharedReceiveQueueLimit = 15,
  };
  Type type;
  uint32_t queue_pair_number = 0;                // Queue pair events.
  SharedReceiveQueue* shared_receive = nullptr;  // kSharedReceiveQueueLimit.
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const Capabilities& capabilities() const = 0;
  // Whether addresses of this scheme ("shm", "rdma", "tcp") are this device's.
  virtual bool ServesScheme(std::string_view scheme) const = 0;

  virtual absl::StatusOr<std::unique_ptr<ProtectionDomain>> AllocateProtectionDomain() = 0;
  virtual absl::StatusOr<std::unique_ptr<CompletionChannel>> CreateCompletionChannel() = 0;
  // `channel` may be null for a queue that is only polled; it must outlive the queue.
  // Errors: INVALID_ARGUMENT naming Capabilities::completion_queue_depth_max.
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(
      uint32_t depth, CompletionChannel* channel) = 0;
  virtual absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager() = 0;

  // Takes the oldest asynchronous event, if any.
  virtual bool PollAsyncEvent(AsyncEvent* event) = 0;
  // Readable while events wait. Owned by the device.
  virtual int async_fd() const = 0;
};

}  // namespace verbena
