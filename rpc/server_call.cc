// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/server_call.h"

#include "verbena/rpc/server_connection.h"

namespace verbena {

void ServerCall::OnTimer() { connection->DeadlineOnPoller(this); }

ServerCallPool::~ServerCallPool() {
  for (FreeMessages& free : messages_) {
    for (MessagePair& pair : free.pairs) {
      free.descriptor->request->destroy(pair.request);
      free.descriptor->response->destroy(pair.response);
    }
  }
}

MessagePair ServerCallPool::TakeMessages(const MethodEntry& method) {
  FreeMessages& free = messages_[method.index];
  if (free.pairs.empty()) {
    free.descriptor = method.descriptor;
    return {method.descriptor->request->create(), method.descriptor->response->create()};
  }
  MessagePair pair = free.pairs.back();
  free.pairs.pop_back();
  return pair;
}

ServerCall* ServerCallPool::Take(const MethodEntry& method) {
  if (free_ == nullptr) {
    all_.push_back(std::make_unique<ServerCall>());
    free_ = all_.back().get();
  }
  ServerCall* call = free_;
  free_ = call->next;
  call->method = &method;
  call->messages = TakeMessages(method);
  call->answered = false;
  call->next = nullptr;
  call->previous = nullptr;
  return call;
}

void ServerCall::DropRequestPayload() {
  const Codec& codec = *method->descriptor->request;
  if (codec.collect != nullptr || (codec.adopt != nullptr && landed)) {
    codec.clear(messages.request);
  }
  context.mutable_attachments()->clear();
}

void ServerCall::DropResponse() {
  context.mutable_response_attachments()->clear();
  const Codec& codec = *method->descriptor->response;
  if (codec.take != nullptr) {
    connection->KeepSpareMemory(codec.take(messages.response));
  } else {
    codec.clear(messages.response);
  }
}

void ServerCallPool::Return(ServerCall* call) {
  call->DropRequestPayload();
  const Codec& request = *call->method->descriptor->request;
  if (request.adopt != nullptr) request.clear(call->messages.request);
  call->DropResponse();
  messages_[call->method->index].pairs.push_back(call->messages);
  call->status = absl::OkStatus();
  call->next = free_;
  free_ = call;
}

}  // namespace verbena
