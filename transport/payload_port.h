// SPDX-License-Identifier: Apache-2.0
//
// What the payload path (payload_sender.h, payload_receiver.h) needs of its endpoint. Threads: the
// poller's.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "verbena/transport/block_pool.h"
#include "verbena/transport/memory.h"
#include "verbena/transport/wire_format.h"

namespace verbena {

class PayloadPort {
 public:
  // Whether a work request may be posted now; `credit`: one that consumes a receive of the peer.
  virtual bool CanPost(bool credit) const = 0;
  // Posts one of the payload path's own work requests, signalled, and returns the count of sends up
  // to and with it: it is over when OnRetired says that so many are. REQUIRES: CanPost(credit).
  virtual uint32_t Post(SendWorkRequest& request, bool credit) = 0;
  // Sends a frame of `bytes` whose header is written here, now or as soon as there is room; order
  // is kept. `frame` is copied.
  virtual void SendNote(FrameKind kind, uint32_t call_id, const void* frame, size_t bytes) = 0;
  virtual void OnDefect(FrameDefect defect) = 0;

  // Makes a block in the background: its OnBlockMade comes later on the poller.
  virtual void MakeInBackground(uint32_t size_class) = 0;
  // Registers memory that was never sent from before, likewise.
  virtual void RegisterInBackground(const Buffer& buffer) = 0;

 protected:
  ~PayloadPort() = default;
};

// Whether the send with this count is over when `retired` are; both are counted modulo 2^32.
inline bool IsRetired(uint32_t count, uint32_t retired) {
  return static_cast<int32_t>(retired - count) >= 0;
}

// Counted since the connection was made, but for the last.
struct PayloadCounters {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t bytes_copied = 0;  // By the library, beside what the device does.
  uint64_t zones_asked = 0;   // Messages that waited a round trip for a zone.
  uint64_t memory_bytes = 0;  // Registered now, used or not.
};

}  // namespace verbena
