// SPDX-License-Identifier: Apache-2.0
//
// A call on the server, and the pool that calls and their messages come from, one per poller.
//
// Threads: the poller's, but for ServerCall's context and messages, which belong to the handler
// while it runs.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "verbena/rpc/method_table.h"
#include "verbena/rpc/server_context.h"
#include "verbena/transport/poller.h"

namespace verbena {

class ServerConnection;

// Request and response of one method, used again and again so that their memory is.
struct MessagePair {
  void* request = nullptr;
  void* response = nullptr;
};

// Its timer is the caller's deadline.
class ServerCall final : public PollerTimer {
 public:
  void OnTimer() override;
  // The handler has returned: the memory that its request landed in, or its attachments, is free for
  // the next. What is in a receive slot can wait until the response is out.
  void DropRequestPayload();
  // The response is sent, or never will be.
  void DropResponse();

  ServerConnection* connection = nullptr;
  const MethodEntry* method = nullptr;
  uint32_t id = 0;
  ServerContext context;
  MessagePair messages;
  bool landed = false;  // The request, and not in a slot.
  absl::Status status;    // What the handler returned.
  bool answered = false;  // Nobody waits for it any more: deadline, cancel, or connection gone.
  ServerCall* next = nullptr;  // In the pool, or among its connection's calls.
  ServerCall* previous = nullptr;
};

class ServerCallPool {
 public:
  explicit ServerCallPool(uint32_t method_count) : messages_(method_count) {}
  ~ServerCallPool();
  ServerCallPool(const ServerCallPool&) = delete;
  ServerCallPool& operator=(const ServerCallPool&) = delete;

  // Allocates only when more are in use than ever before.
  ServerCall* Take(const MethodEntry& method);
  void Return(ServerCall* call);

 private:
  struct FreeMessages {
    const MethodDescriptor* descriptor = nullptr;
    std::vector<MessagePair> pairs;
  };
  MessagePair TakeMessages(const MethodEntry& method);

  std::vector<FreeMessages> messages_;  // By MethodEntry::index.
  std::vector<std::unique_ptr<ServerCall>> all_;
  ServerCall* free_ = nullptr;
};

}  // namespace verbena
