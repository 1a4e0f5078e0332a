// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/unary_call.h"

#include <utility>

#include "verbena/rpc/client_connection.h"

namespace verbena {

absl::Status CallUnary(Channel& channel, const MethodDescriptor& method, ClientContext* context,
                       const void* request, void* response) {
  return channel.connection().Call(
      {.method = &method, .context = context, .request = request, .response = response});
}

void StartUnary(Channel& channel, const MethodDescriptor& method, ClientContext* context,
                const void* request, void* response, DoneCallback done) {
  channel.connection().Start({.method = &method,
                              .context = context,
                              .request = request,
                              .response = response,
                              .done = std::move(done)});
}

}  // namespace verbena
