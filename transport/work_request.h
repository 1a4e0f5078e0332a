// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary of the RDMA model: keys, scatter/gather entries, work requests and completions.
//
// Every enumerator has the numeric value of its twin in <infiniband/verbs.h>, and
// ScatterGatherEntry has the layout of `struct ibv_sge`, so that the rdma-core device casts and
// never translates. Plain data: no threads, no ownership.
//
// Sources: ibv_post_send(3), ibv_post_recv(3), ibv_poll_cq(3), ibv_reg_mr(3); InfiniBand
// Architecture Specification vol. 1, sections 9 (transport), 10 and 11 (verbs).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace verbena {

class MemoryRegion;
class MemoryWindow;

// A local key opens memory to the device of the process that registered it; it never travels.
// A remote key opens it to the peer. They are numbers of the same width and must never be mixed,
// hence two types.
struct LocalKey {
  uint32_t value = 0;
  friend bool operator==(LocalKey, LocalKey) = default;
};
struct RemoteKey {
  uint32_t value = 0;
  friend bool operator==(RemoteKey, RemoteKey) = default;
};

// Rights of a memory region or window; a set of bits. Values of `enum ibv_access_flags`.
using AccessFlags = uint32_t;
inline constexpr AccessFlags kAccessLocalRead = 0;  // Always granted.
inline constexpr AccessFlags kAccessLocalWrite = 1u << 0;
inline constexpr AccessFlags kAccessRemoteWrite = 1u << 1;  // Requires kAccessLocalWrite.
inline constexpr AccessFlags kAccessRemoteRead = 1u << 2;
inline constexpr AccessFlags kAccessRemoteAtomic = 1u << 3;  // Requires kAccessLocalWrite.
inline constexpr AccessFlags kAccessWindowBind = 1u << 4;    // A memory window may be bound to it.
inline constexpr AccessFlags kAccessRelaxedOrdering = 1u << 20;

// Values of `enum ibv_wr_opcode`.
enum class Opcode : uint32_t {
  kWrite = 0,
  kWriteWithImm = 1,
  kSend = 2,
  kSendWithImm = 3,
  kRead = 4,
  kCompareAndSwap = 5,
  kFetchAndAdd = 6,
  kLocalInvalidate = 7,
  kBindWindow = 8,
  kSendWithInvalidate = 9,
};

// Values of `enum ibv_send_flags`.
using SendFlags = uint32_t;
inline constexpr SendFlags kSendFence = 1u << 0;      // Wait for earlier READs and atomics.
inline constexpr SendFlags kSendSignaled = 1u << 1;   // Make a completion on success, too.
inline constexpr SendFlags kSendSolicited = 1u << 2;  // Wake a peer armed for solicited events.
inline constexpr SendFlags kSendInline = 1u << 3;     // Copy at post time: the buffers are free
                                                      // at return and need no local key.

// A piece of registered memory. `address` is an address of this process. Layout of `ibv_sge`.
struct ScatterGatherEntry {
  uint64_t address = 0;
  uint32_t length = 0;  // Bytes.
  LocalKey local_key;
};

// Where READ, WRITE and WRITE_WITH_IMM go: an address of the peer's process, and its key.
struct RemoteTarget {
  uint64_t address = 0;
  RemoteKey key;
};

// COMPARE_AND_SWAP: if *address == compare_add then *address = swap.
// FETCH_AND_ADD: *address += compare_add. Both return the old 8-byte value into the one
// scatter/gather entry. `address` must be a multiple of 8.
struct AtomicTarget {
  uint64_t address = 0;
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  RemoteKey key;
};

// BIND_WINDOW, type 2: gives `window` the key `key` over [address, address + length) of `region`
// for the peer of this queue pair. Get `key` from MemoryWindow::NextKey().
struct WindowBinding {
  MemoryWindow* window = nullptr;
  const MemoryRegion* region = nullptr;
  uint64_t address = 0;
  uint64_t length = 0;
  AccessFlags access = 0;
  RemoteKey key;
};

// One request to the send queue. The scatter/gather list is read before PostSend returns; the
// memory it points at belongs to the device until the completion (see kSendInline).
struct SendWorkRequest {
  uint64_t wr_id = 0;  // Comes back in the completion, untouched.
  Opcode opcode = Opcode::kSend;
  SendFlags flags = 0;
  std::span<const ScatterGatherEntry> sg_list;
  // kSendWithImm, kWriteWithImm: 32 bits for the receiver, host byte order at this interface and
  // network byte order on the wire.
  uint32_t imm_data = 0;
  // kSendWithInvalidate: a key of the peer's. kLocalInvalidate: a key of our own.
  RemoteKey invalidate_key;
  // By opcode, one of these. Not a union, so that the struct stays an aggregate.
  RemoteTarget remote;
  AtomicTarget atomic;
  WindowBinding bind;
};

// One request to a receive queue. The memory belongs to the device until the completion.
struct RecvWorkRequest {
  uint64_t wr_id = 0;
  std::span<const ScatterGatherEntry> sg_list;
};

// Values of `enum ibv_wc_status`; InfiniBand specification vol. 1, section 11.6.2.
enum class CompletionStatus : uint32_t {
  kSuccess = 0,
  kLocalLengthError = 1,
  kLocalQueuePairOperationError = 2,
  kLocalProtectionError = 4,
  kFlushed = 5,
  kWindowBindError = 6,
  kBadResponseError = 7,
  kLocalAccessError = 8,
  kRemoteInvalidRequestError = 9,
  kRemoteAccessError = 10,
  kRemoteOperationError = 11,
  kRetryExceeded = 12,
  kReceiverNotReadyRetryExceeded = 13,
  kRemoteAborted = 16,
  kFatal = 19,
  kResponseTimeout = 20,
  kGeneral = 21,
};

// "success", "receiver not ready: retries exceeded", ... Static storage.
std::string_view CompletionStatusName(CompletionStatus status);

// Values of `enum ibv_wc_opcode`.
enum class CompletionOpcode : uint32_t {
  kSend = 0,
  kWrite = 1,
  kRead = 2,
  kCompareAndSwap = 3,
  kFetchAndAdd = 4,
  kBindWindow = 5,
  kLocalInvalidate = 6,
  kRecv = 128,
  kRecvWriteWithImm = 129,
};

// Values of `enum ibv_wc_flags`.
using CompletionFlags = uint32_t;
inline constexpr CompletionFlags kCompletionWithImm = 1u << 1;
inline constexpr CompletionFlags kCompletionWithInvalidate = 1u << 3;

// One entry of a completion queue. When `status` is not kSuccess only wr_id, status,
// vendor_error and queue_pair_number mean anything (ibv_poll_cq(3)): keep the rest of what you
// need in a table of your own.
struct WorkCompletion {
  uint64_t wr_id;
  CompletionStatus status;
  CompletionOpcode opcode;
  uint32_t vendor_error;
  uint32_t byte_length;  // Receives, READs and atomics: bytes written to our memory.
  union {
    uint32_t imm_data;         // With kCompletionWithImm; host byte order.
    uint32_t invalidated_key;  // With kCompletionWithInvalidate. A message has one or the other.
  };
  uint32_t queue_pair_number;
  CompletionFlags flags;
};

}  // namespace verbena
