// SPDX-License-Identifier: Apache-2.0
//
// The operations of operations.h with FlatBuffers. A request is built once, as Protobuf's is filled
// once there, and sent again and again; but for FlatRebuildOperation.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tools/rpc_bench/flat_bench.verbena.h"
#include "verbena/rpc/flat_message.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tools/rpc_bench/flat_payload.h"

namespace verbena::bench {

struct FlatEchoOperation {
  using Service = flat::FlatBench;
  using Request = FlatMessage<flat::EchoMessage>;
  using Response = FlatMessage<flat::EchoMessage>;
  using Payload = Request;

  static Payload MakePayload(Channel& channel, uint64_t bytes) {
    return BuildPayload<flat::EchoMessage>(channel, bytes, flat::CreateEchoMessage);
  }
  static void Fill(Channel&, const Payload& payload, Request* request) { *request = payload; }
  static absl::Status Call(Service::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Echo(context, request, response);
  }
  static void Start(Service::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Echo(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) {
    return response->payload() == nullptr ? 0 : response->payload()->size();
  }
  static void Prepare(uint64_t, ClientContext*) {}
};

// An echo that builds a message for each request and each response.
struct FlatRebuildOperation {
  using Service = flat::FlatBench;
  struct Request {
    std::string payload;
    std::unique_ptr<FlatMessageBuilder> builder;
    FlatMessage<flat::EchoMessage> message;

    void Build() {
      message.Clear();  // The next is built where it was.
      builder->Finish(flat::CreateEchoMessage(
          *builder,
          builder->CreateVector(reinterpret_cast<const uint8_t*>(payload.data()), payload.size())));
      message = builder->ReleaseMessage<flat::EchoMessage>();
    }
  };
  using Response = FlatMessage<flat::EchoMessage>;
  using Payload = std::string;

  static Payload MakePayload(Channel&, uint64_t bytes) { return std::string(bytes, 'v'); }
  static void Fill(Channel& channel, const Payload& payload, Request* request) {
    request->payload = payload;
    request->builder =
        std::make_unique<FlatMessageBuilder>(channel, payload.size() + kFlatOverheadBytes);
  }
  static absl::Status Call(Service::Stub& stub, ClientContext* context, Request& request,
                           Response* response) {
    request.Build();
    return stub.Rebuild(context, request.message, response);
  }
  static void Start(Service::Stub& stub, ClientContext* context, Request* request,
                    Response* response, DoneCallback done) {
    request->Build();
    stub.async()->Rebuild(context, &request->message, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) {
    return FlatEchoOperation::BytesMoved(response);
  }
  static void Prepare(uint64_t, ClientContext*) {}
};

struct FlatUploadOperation {
  using Service = flat::FlatBench;
  using Request = FlatMessage<flat::UploadRequest>;
  using Response = FlatMessage<flat::UploadResponse>;
  using Payload = Request;

  static Payload MakePayload(Channel& channel, uint64_t bytes) {
    return BuildPayload<flat::UploadRequest>(channel, bytes, flat::CreateUploadRequest);
  }
  static void Fill(Channel&, const Payload& payload, Request* request) { *request = payload; }
  static absl::Status Call(Service::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Upload(context, request, response);
  }
  static void Start(Service::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Upload(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) { return response->bytes(); }
  static void Prepare(uint64_t, ClientContext*) {}
};

struct FlatDownloadOperation {
  using Service = flat::FlatBench;
  using Request = FlatMessage<flat::DownloadRequest>;
  using Response = FlatMessage<flat::DownloadResponse>;
  using Payload = Request;

  static Payload MakePayload(Channel& channel, uint64_t bytes) {
    FlatMessageBuilder builder(channel);
    builder.Finish(flat::CreateDownloadRequest(builder, bytes));
    return builder.ReleaseMessage<flat::DownloadRequest>();
  }
  static void Fill(Channel&, const Payload& payload, Request* request) { *request = payload; }
  static absl::Status Call(Service::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Download(context, request, response);
  }
  static void Start(Service::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Download(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) {
    return response->payload() == nullptr ? 0 : response->payload()->size();
  }
  // The response's memory travels in the request.
  static void Prepare(uint64_t bytes, ClientContext* context) {
    context->set_response_bytes_max(bytes + kFlatOverheadBytes);
  }
};

}  // namespace verbena::bench
