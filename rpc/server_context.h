// SPDX-License-Identifier: Apache-2.0
//
// What a handler may ask of the call it serves. Lives until the handler returns. Any thread.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

#include "verbena/rpc/attachment.h"

namespace verbena {

class MessageMemory;

class ServerContext {
 public:
  ServerContext() = default;
  ServerContext(const ServerContext&) = delete;
  ServerContext& operator=(const ServerContext&) = delete;

  // True when nobody waits for the answer any more: the caller cancelled, its deadline has passed,
  // or its connection is gone. A handler that works long should look now and then.
  bool IsCancelled() const {
    if (cancelled_.load(std::memory_order_acquire)) return true;
    return deadline_ns_ != kNoDeadline && NowNs() >= deadline_ns_;
  }

  // The caller's deadline on this host's clock; time_point::max() without one.
  std::chrono::steady_clock::time_point deadline() const {
    if (deadline_ns_ == kNoDeadline) return std::chrono::steady_clock::time_point::max();
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns_));
  }

  // What the caller attached to its request (ClientContext::AddAttachment), where the device put it.
  // A Buffer that is kept longer than the call keeps its memory.
  const AttachmentList& attachments() const { return attachments_; }
  // Sends `buffer` with the response, if that is OK. Nothing is copied, unless all is so short that
  // it goes in a slot. Leave the memory alone from now on, until the Buffer's last reference (which
  // the library holds while it sends) is gone.
  void AddResponseAttachment(Buffer buffer) {
    response_attachments_.push_back({std::move(buffer), 0});
  }

  // For what builds messages. Null outside of a server.
  MessageMemory* message_memory() const { return message_memory_; }
  // A block that the last response was built in and that nobody uses; or empty.
  Buffer TakeSpareMemory() {
    return spare_memory_ != nullptr ? std::move(*spare_memory_) : Buffer();
  }

  // For the server.
  static constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();
  void Reset(int64_t deadline_ns) {
    deadline_ns_ = deadline_ns;
    cancelled_.store(false, std::memory_order_relaxed);
  }
  AttachmentList* mutable_attachments() { return &attachments_; }
  AttachmentList* mutable_response_attachments() { return &response_attachments_; }
  // `spare`: null where the handler runs on another thread than the connection.
  void SetMessageMemory(MessageMemory* memory, Buffer* spare) {
    message_memory_ = memory;
    spare_memory_ = spare;
  }
  void Cancel() { cancelled_.store(true, std::memory_order_release); }
  int64_t deadline_ns() const { return deadline_ns_; }

 private:
  static int64_t NowNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  int64_t deadline_ns_ = kNoDeadline;
  std::atomic<bool> cancelled_{false};
  AttachmentList attachments_;
  AttachmentList response_attachments_;
  MessageMemory* message_memory_ = nullptr;
  Buffer* spare_memory_ = nullptr;
};

}  // namespace verbena
