// SPDX-License-Identifier: Apache-2.0
//
// What a device can do. The layers above choose by these facts and never by a device's name; the
// conformance suite checks that each fact agrees with what the device does.

#pragma once

#include <cstdint>
#include <string>

namespace verbena {

struct Capabilities {
  std::string device;  // "soft", "mlx5_0", ...: for people and logs only.
  std::string wire;    // "shm", "infiniband", "roce v2", "iwarp".

  bool write_with_imm = false;
  bool send_with_imm = false;
  bool send_with_invalidate = false;
  bool atomics = false;         // 8-byte COMPARE_AND_SWAP and FETCH_AND_ADD.
  bool memory_windows = false;  // Type 2.
  bool shared_receive_queue = false;
  bool receiver_not_ready = false;  // False: a SEND without a RECV ends the connection (iWARP).
  bool error_tells_sender = false;  // False: success says nothing of the peer (iWARP).
  // True: the accepting side may send only after it has received something (iWARP: RFC 5044,
  // section 7.1.3), so the connecting side sends a frame at once.
  bool connecting_side_sends_first = false;

  // Remote rights may be given to memory that the user allocated. False: only to memory from
  // ProtectionDomain::AllocateMemory; RegisterMemory then refuses remote rights.
  bool remote_access_to_user_memory = false;
  // A receive into memory that the user allocated takes at most so many bytes (one more copy is
  // made). Receives into AllocateMemory memory have no such limit.
  uint64_t user_memory_receive_bytes_max = 0;
  // The same for a receive taken from a shared receive queue.
  uint64_t shared_receive_bytes_max = 0;

  uint64_t message_bytes_max = 0;
  uint32_t queue_pairs_max = 0;
  uint32_t queue_depth_max = 0;             // Work requests in one send or receive queue.
  uint32_t completion_queue_depth_max = 0;  // Entries.
  uint32_t send_sge_max = 0;
  uint32_t recv_sge_max = 0;
  uint32_t read_sge_max = 0;            // Entries that a READ may be scattered over.
  uint32_t inline_bytes_max = 0;        // Largest kSendInline message.
  uint32_t private_data_bytes_max = 0;  // In a connection request or reply.
};

}  // namespace verbena
