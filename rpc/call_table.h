// SPDX-License-Identifier: Apache-2.0
//
// The calls of one channel that are outstanding: a table of fixed size, allocated once.
//
// A call id on the wire is the slot's index and the slot's generation. A response to a call that
// has ended (its deadline passed, say) finds a newer generation and is dropped.
//
// Threads: the poller's.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "verbena/rpc/blocking_waiter.h"
#include "verbena/rpc/client_context.h"
#include "verbena/rpc/method.h"
#include "verbena/transport/poller.h"

namespace verbena {

class ClientConnection;

// What a caller asks for. `request` and `response` are of the types of the method's codecs.
// Ends at `waiter` if there is one, else at `done`.
struct CallStart {
  const MethodDescriptor* method = nullptr;
  ClientContext* context = nullptr;
  const void* request = nullptr;
  void* response = nullptr;
  std::function<void(absl::Status)> done;
  BlockingWaiter* waiter = nullptr;
};

// One outstanding call. Its timer is the deadline.
class ClientCall final : public PollerTimer {
 public:
  enum class State : uint8_t {
    kFree,
    kQueued,  // Waits for a connection, a credit or a send slot.
    kSent,    // Waits for the response.
  };

  void OnTimer() override;

  ClientConnection* connection = nullptr;
  CallStart start;
  State state = State::kFree;
  uint32_t id = 0;             // On the wire. Never 0 while the call is outstanding.
  uint64_t expected_bytes = 0;  // As Endpoint::ExpectResponse was told; 0: was not.
  ZoneGrant reply_zone;         // That rode in its request; immediate 0: none.
  ClientCall* next = nullptr;  // In the free list, or in the queue.
};

class CallTable {
 public:
  // 1 <= capacity <= kCapacityMax.
  CallTable(uint32_t capacity, ClientConnection* connection)
      : capacity_(capacity), calls_(std::make_unique<ClientCall[]>(capacity)) {
    for (uint32_t i = capacity; i-- > 0;) {
      calls_[i].connection = connection;
      calls_[i].id = i;
      calls_[i].next = free_;
      free_ = &calls_[i];
    }
  }

  // Null when all are in use.
  ClientCall* Allocate() {
    ClientCall* call = free_;
    if (call == nullptr) return nullptr;
    free_ = call->next;
    call->next = nullptr;
    call->id += kCapacityMax;                               // The next generation,
    if (call->id < kCapacityMax) call->id += kCapacityMax;  // which is never 0.
    ++in_use_;
    return call;
  }
  void Free(ClientCall* call) {
    call->expected_bytes = 0;
    call->reply_zone = {};
    call->state = ClientCall::State::kFree;
    call->next = free_;
    free_ = call;
    --in_use_;
  }

  // The call with this id if it waits for a response, else null.
  ClientCall* FindSent(uint32_t id) {
    const uint32_t index = id % kCapacityMax;
    if (index >= capacity_) return nullptr;
    ClientCall* call = &calls_[index];
    return call->id == id && call->state == ClientCall::State::kSent ? call : nullptr;
  }

  // Calls f(ClientCall&) for each that is outstanding; f may free it.
  template <class F>
  void ForEach(F&& f) {
    for (uint32_t i = 0; i < capacity_ && in_use_ > 0; ++i) {
      if (calls_[i].state != ClientCall::State::kFree) f(calls_[i]);
    }
  }

  uint32_t in_use() const { return in_use_; }
  uint32_t capacity() const { return capacity_; }

  // 12 bits of index leave 20 of generation: a slot is used a million times before an id returns.
  static constexpr uint32_t kCapacityMax = 4096;

 private:
  const uint32_t capacity_;
  std::unique_ptr<ClientCall[]> calls_;
  ClientCall* free_ = nullptr;
  uint32_t in_use_ = 0;
};

}  // namespace verbena
