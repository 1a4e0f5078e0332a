// SPDX-License-Identifier: Apache-2.0
//
// What Verbena puts into the 64-bit wr_id of a work request. On an error completion only wr_id,
// status and queue pair number mean anything, so everything needed to find the owner is in here.
//
//   63..48  index of the endpoint in its poller
//   47..32  generation: a completion of an endpoint that is gone finds a newer one, and is dropped
//   31      1: a send, 0: a receive
//   30..0   receive: the slot
//   30      send: 1: a probe, which counts as no send
//   29..16  send: 14 bits of the count of send slots in use up to and with this one
//   15..0   send: 16 bits of the count of sends up to and with this one
//
// A value; any thread.

#pragma once

#include <cstdint>

namespace verbena {

struct EndpointId {
  uint16_t index = 0;
  uint16_t generation = 0;
  friend bool operator==(EndpointId, EndpointId) = default;
};

class WorkRequestId {
 public:
  explicit constexpr WorkRequestId(uint64_t value) : value_(value) {}

  static constexpr WorkRequestId Receive(EndpointId id, uint32_t slot) {
    return WorkRequestId(Owner(id) | slot);
  }
  static constexpr WorkRequestId Send(EndpointId id, uint32_t send_count, uint32_t slot_count) {
    return WorkRequestId(Owner(id) | kSendBit | (uint64_t{slot_count & kSlotCountMask} << 16) |
                         (send_count & 0xffff));
  }
  // A probe (endpoint.h). The counts are those of the sends before it.
  static constexpr WorkRequestId Probe(EndpointId id, uint32_t send_count, uint32_t slot_count) {
    return WorkRequestId(Send(id, send_count, slot_count).value_ | kProbeBit);
  }

  constexpr uint64_t value() const { return value_; }
  constexpr EndpointId endpoint() const {
    return {static_cast<uint16_t>(value_ >> 48), static_cast<uint16_t>(value_ >> 32)};
  }
  constexpr bool is_send() const { return (value_ & kSendBit) != 0; }
  // Of one that is_send().
  constexpr bool is_probe() const { return (value_ & kProbeBit) != 0; }
  constexpr uint32_t slot() const { return static_cast<uint32_t>(value_ & 0x7fffffff); }

  // The full count that ends in this id's bits, given one at most 65,535 (16,383) below it.
  constexpr uint32_t SendCount(uint32_t at_least) const {
    return at_least + ((static_cast<uint32_t>(value_) - at_least) & 0xffff);
  }
  constexpr uint32_t SlotCount(uint32_t at_least) const {
    return at_least + ((static_cast<uint32_t>(value_ >> 16) - at_least) & kSlotCountMask);
  }

 private:
  static constexpr uint64_t kSendBit = uint64_t{1} << 31;
  static constexpr uint64_t kProbeBit = uint64_t{1} << 30;
  static constexpr uint32_t kSlotCountMask = 0x3fff;
  static constexpr uint64_t Owner(EndpointId id) {
    return (uint64_t{id.index} << 48) | (uint64_t{id.generation} << 32);
  }
  uint64_t value_;
};

}  // namespace verbena
