// SPDX-License-Identifier: Apache-2.0
//
// The control messages of the shm wire. They travel over a Unix SOCK_SEQPACKET socket in the
// abstract name space, one datagram each, with descriptors as SCM_RIGHTS:
//
//   client                                  server
//   kRequest  private data          ->
//                                   <-      kReply  private data + 3 descriptors, or kReject
//   kReady    3 descriptors         ->
//   kRegion   1 descriptor, kRegionGone, kFault, kDisconnect: either way, afterwards
//
// Descriptors go only to a peer that was accepted, so a rejected client gave nothing away. The
// three are: RX segment, eventfd that wakes the sender of the message, key table.
//
// Nothing here is trusted: IsWellFormed() is the one check of a message by itself, and whoever
// consumes it checks its meaning.

#pragma once

#include <cstddef>
#include <cstdint>

namespace verbena::soft {

inline constexpr uint32_t kWireMagic = 0x41425256;  // "VRBA"
// Rises with any change of this file, segment.h or KeyEntry.
inline constexpr uint16_t kWireVersion = 1;

enum class MessageType : uint16_t {
  kRequest = 1,
  kReply = 2,
  kReject = 3,
  kReady = 4,
  kRegion = 5,      // `region` with `region_bytes` of memory can be mapped.
  kRegionGone = 6,  // `region` should be unmapped.
  kFault = 7,       // The receiver's queue pair is to enter kError for `fault`.
  kDisconnect = 8,  // The sender leaves.
};

// ControlMessage::flags.
inline constexpr uint32_t kMessageMembarrier = 1;  // kRequest, kReply: see barrier.h.
inline constexpr uint32_t kMessageWritable = 2;    // kRegion: map it for writing, too.
inline constexpr uint32_t kMessagePrefaulted = 4;  // kRegion: its pages exist.

// kReject.
enum class RejectReason : uint16_t {
  kByApplication = 1,
  kVersion = 2,
  kUser = 3,
  kShutdown = 4,
};

// kFault; the values of AsyncEvent::Type.
enum class Fault : uint16_t {
  kRequest = 2,
  kAccess = 3,
};

struct ControlMessage {
  uint32_t magic = kWireMagic;
  uint16_t version = kWireVersion;
  MessageType type = MessageType::kDisconnect;
  uint32_t flags = 0;
  uint32_t queue_pair = 0;               // kRequest, kReply: the sender's number.
  uint32_t slots = 0;                    // kReply, kReady: of the sender's RX segment.
  uint16_t reason = 0;                   // kReject: RejectReason. kFault: Fault.
  uint8_t receiver_not_ready_timer = 0;  // kRequest, kReply.
  uint8_t private_data_bytes = 0;        // kRequest, kReply, kReject.
  uint64_t region_bytes = 0;             // kRegion.
  uint32_t region = 0;                   // kRegion, kRegionGone: remote key.
  uint32_t reserved = 0;
  std::byte private_data[56] = {};
};
static_assert(sizeof(ControlMessage) == 96);
static_assert(offsetof(ControlMessage, private_data) == 40);

inline constexpr size_t kDescriptorsMax = 3;

// Descriptors that belong to a message of this type.
constexpr size_t DescriptorsOf(MessageType type) {
  switch (type) {
    case MessageType::kReply:
    case MessageType::kReady:
      return 3;
    case MessageType::kRegion:
      return 1;
    default:
      return 0;
  }
}

inline bool IsWellFormed(const ControlMessage& message, size_t descriptor_count) {
  return message.magic == kWireMagic && message.type >= MessageType::kRequest &&
         message.type <= MessageType::kDisconnect &&
         message.private_data_bytes <= sizeof message.private_data &&
         message.receiver_not_ready_timer < 32 && descriptor_count == DescriptorsOf(message.type);
}

}  // namespace verbena::soft
