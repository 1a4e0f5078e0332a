// SPDX-License-Identifier: Apache-2.0
//
// Send work requests that own their scatter/gather list: Send(7, {source.All()}).Inline().
// Signalled unless Unsignaled() is said.

#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "verbena/transport/memory.h"
#include "verbena/transport/work_request.h"

namespace verbena::conformance {

using Pieces = std::vector<ScatterGatherEntry>;

class Request {
 public:
  Request(uint64_t id, Opcode opcode, Pieces pieces) : pieces_(std::move(pieces)) {
    work_.wr_id = id;
    work_.opcode = opcode;
    work_.flags = kSendSignaled;
  }

  Request& Unsignaled() { return Flag(work_.flags & ~kSendSignaled); }
  Request& Inline() { return Flag(work_.flags | kSendInline); }
  Request& Fenced() { return Flag(work_.flags | kSendFence); }
  Request& Solicited() { return Flag(work_.flags | kSendSolicited); }
  Request& To(RemoteTarget target) {
    std::construct_at(&work_.remote, target);
    return *this;
  }
  Request& On(const AtomicTarget& target) {
    std::construct_at(&work_.atomic, target);
    return *this;
  }
  Request& Binding(const WindowBinding& binding) {
    std::construct_at(&work_.bind, binding);
    return *this;
  }
  Request& Imm(uint32_t value) {
    work_.imm_data = value;
    return *this;
  }
  Request& Invalidating(RemoteKey key) {
    work_.invalidate_key = key;
    return *this;
  }

  // Points into this object.
  SendWorkRequest work() const {
    SendWorkRequest work = work_;
    work.sg_list = pieces_;
    return work;
  }

 private:
  Request& Flag(SendFlags flags) {
    work_.flags = flags;
    return *this;
  }

  SendWorkRequest work_;
  Pieces pieces_;
};

inline Request Send(uint64_t id, Pieces from) { return {id, Opcode::kSend, std::move(from)}; }
inline Request SendWithImm(uint64_t id, Pieces from, uint32_t imm) {
  return Request(id, Opcode::kSendWithImm, std::move(from)).Imm(imm);
}
inline Request SendWithInvalidate(uint64_t id, Pieces from, RemoteKey key) {
  return Request(id, Opcode::kSendWithInvalidate, std::move(from)).Invalidating(key);
}
inline Request Write(uint64_t id, Pieces from, RemoteTarget to) {
  return Request(id, Opcode::kWrite, std::move(from)).To(to);
}
inline Request WriteWithImm(uint64_t id, Pieces from, RemoteTarget to, uint32_t imm) {
  return Request(id, Opcode::kWriteWithImm, std::move(from)).To(to).Imm(imm);
}
inline Request Read(uint64_t id, Pieces into, RemoteTarget from) {
  return Request(id, Opcode::kRead, std::move(into)).To(from);
}
inline Request CompareAndSwap(uint64_t id, ScatterGatherEntry old_value, RemoteTarget at,
                              uint64_t compare, uint64_t swap) {
  return Request(id, Opcode::kCompareAndSwap, {old_value})
      .On({.address = at.address, .compare_add = compare, .swap = swap, .key = at.key});
}
inline Request FetchAndAdd(uint64_t id, ScatterGatherEntry old_value, RemoteTarget at,
                           uint64_t add) {
  return Request(id, Opcode::kFetchAndAdd, {old_value})
      .On({.address = at.address, .compare_add = add, .swap = 0, .key = at.key});
}
inline Request BindWindow(uint64_t id, MemoryWindow& window, const MemoryRegion& region,
                          size_t offset, size_t length, AccessFlags access) {
  return Request(id, Opcode::kBindWindow, {})
      .Binding({.window = &window,
                .region = &region,
                .address = region.address() + offset,
                .length = length,
                .access = access,
                .key = window.NextKey()});
}
inline Request LocalInvalidate(uint64_t id, RemoteKey key) {
  return Request(id, Opcode::kLocalInvalidate, {}).Invalidating(key);
}

}  // namespace verbena::conformance
