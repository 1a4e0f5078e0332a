// SPDX-License-Identifier: Apache-2.0
//
// Reliable-connected queue pairs and shared receive queues.
//
// A queue pair delivers in order and exactly once while it lives; between queue pairs nothing is
// ordered. Any error moves it to kError, where everything outstanding, and everything posted
// afterwards, completes with kFlushed.
//
// Threads: Post* belong to the thread that polls the completion queue (completion_queue.h).
// Lifetime: destroying a queue pair disconnects it and drops its outstanding work without
// completions; drain first (move to kError, poll until all is flushed). Entries of a destroyed
// queue pair are gone from the completion queue.
//
// Sources: ibv_create_qp(3), ibv_post_send(3), ibv_post_recv(3), ibv_create_srq(3),
// ibv_modify_srq(3); InfiniBand specification vol. 1, sections 9.7 and 10.3.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "verbena/transport/work_request.h"

namespace verbena {

class CompletionQueue;

struct SharedReceiveQueueOptions {
  uint32_t depth = 128;  // Receives.
  uint32_t sge_max = 1;
};

// Receives shared by many queue pairs.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;
  // As QueuePair::PostRecv.
  virtual absl::Status PostRecv(std::span<const RecvWorkRequest> requests,
                                size_t* accepted = nullptr) = 0;
  // One kSharedReceiveQueueLimit event when fewer than `limit` receives are left; 0 disarms.
  virtual absl::Status ArmLimit(uint32_t limit) = 0;
};

struct QueuePairOptions {
  CompletionQueue* send_queue = nullptr;         // Completions of sends. Must outlive the pair.
  CompletionQueue* recv_queue = nullptr;         // Completions of receives; may be the same.
  SharedReceiveQueue* shared_receive = nullptr;  // Then recv_depth is ignored.
  uint32_t send_depth = 128;                     // Work requests, signalled or not.
  uint32_t recv_depth = 128;
  uint32_t send_sge_max = 2;
  uint32_t recv_sge_max = 1;
  uint32_t inline_bytes_max = 0;
  bool signal_all = false;  // Every send makes a completion.
};

// Values of `enum ibv_qp_state`.
enum class QueuePairState : uint32_t {
  kReset = 0,
  kInit = 1,  // Receives may be posted; nothing moves.
  kReadyToReceive = 2,
  kReadyToSend = 3,
  kError = 6,
};

// Since creation. What hardware counts per port, the software device counts per queue pair.
struct QueuePairCounters {
  uint64_t receiver_not_ready = 0;  // Times a send of ours met no receive at the peer.
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_staged = 0;  // Bytes that took one more copy (capabilities.h).
};

class QueuePair {
 public:
  virtual ~QueuePair() = default;

  // Posts requests in order, with one doorbell. Stops at the first that is refused; `*accepted`
  // counts those before it, which stay posted. Errors:
  //   RESOURCE_EXHAUSTED    the send queue is full: poll, then post the rest again;
  //   INVALID_ARGUMENT      too many scatter/gather entries, inline data over its limit, an
  //                         atomic that is not one 8-byte entry;
  //   UNIMPLEMENTED         an opcode outside the Capabilities;
  //   FAILED_PRECONDITION   the pair is not connected yet.
  // What only the transport can find (keys, bounds, the peer) is told by the completion.
  virtual absl::Status PostSend(std::span<const SendWorkRequest> requests,
                                size_t* accepted = nullptr) = 0;

  // Posts receives; allowed in every state but kReset. Errors: RESOURCE_EXHAUSTED,
  // INVALID_ARGUMENT; FAILED_PRECONDITION with a shared receive queue.
  virtual absl::Status PostRecv(std::span<const RecvWorkRequest> requests,
                                size_t* accepted = nullptr) = 0;

  virtual QueuePairState state() const = 0;
  // Flushes: see above. The peer's sends then fail with kRetryExceeded. Idempotent.
  virtual void MoveToError() = 0;
  virtual uint32_t number() const = 0;  // Unique among the live pairs of the device.
  virtual QueuePairCounters counters() const = 0;
};

}  // namespace verbena
