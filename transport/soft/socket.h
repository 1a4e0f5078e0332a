// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets of the control path. Non-blocking throughout; any thread.
// Source: unix(7), "Abstract" and SCM_RIGHTS.

#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/soft/shared_memory.h"
#include "verbena/transport/soft/wire.h"

namespace verbena::soft {

// Errors: ALREADY_EXISTS, RESOURCE_EXHAUSTED.
absl::StatusOr<UniqueFd> ListenOn(std::string_view name);

// A socket to connect with. Errors: RESOURCE_EXHAUSTED.
absl::StatusOr<UniqueFd> CreateSocket();

// 0, or the error number: EAGAIN when the server's queue is full, ECONNREFUSED when no one listens.
int ConnectTo(int fd, std::string_view name);

// Whether the process at the other end runs under our effective user or root.
// Errors: PERMISSION_DENIED.
absl::Status CheckPeerUser(int fd);

// 0, or the error number: EAGAIN and its like mean "later".
int SendMessage(int fd, const ControlMessage& message, std::span<const int> descriptors);
bool IsTransient(int error);

enum class ReceiveResult {
  kMessage,
  kNothing,  // Later.
  kClosed,
  kMalformed,
};
// Descriptors that came with a malformed message are closed.
ReceiveResult ReceiveMessage(int fd, ControlMessage* message,
                             std::vector<UniqueFd>* descriptors);

}  // namespace verbena::soft
