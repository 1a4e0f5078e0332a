// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/unary_call.h"

#include <utility>

#include "verbena/rpc/client_connection.h"

namespace verbena {

absl::Status CallUnary(Channel& channel, const MethodDescriptor& method, ClientContext* context,
                       const void* request, void* response) {
  CallStart start;
  start.method = &method;
  start.context = context;
  start.request = request;
  start.response = response;
  return channel.connection().Call(std::move(start));
}

void StartUnary(Channel& channel, const MethodDescriptor& method, ClientContext* context,
                const void* request, void* response, DoneCallback done) {
  CallStart start;
  start.method = &method;
  start.context = context;
  start.request = request;
  start.response = response;
  start.done = std::move(done);
  channel.connection().Start(std::move(start));
}

}  // namespace verbena
