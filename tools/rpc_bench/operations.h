// SPDX-License-Identifier: Apache-2.0
//
// The calls that are measured with Protobuf, each as a struct of static functions, so that a loop over one of
// them is compiled for it and calls the stub directly. No state; any thread.

#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "glog/logging.h"
#include "tools/rpc_bench/bench.verbena.h"
#include "verbena/rpc/verbena.h"

namespace verbena::bench {

struct EchoOperation {
  using Service = Bench;
  using Request = EchoRequest;
  using Response = EchoResponse;

  using Payload = std::string;

  static Payload MakePayload(uint64_t bytes) { return std::string(bytes, 'v'); }
  static void Fill(const Payload& payload, Request* request) { request->set_payload(payload); }
  static absl::Status Call(Bench::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Echo(context, request, response);
  }
  static void Start(Bench::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Echo(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) { return response.payload().size(); }
  static void Prepare(uint64_t, ClientContext*) {}
  static EchoRequest& MessageOf(Request& request) { return request; }
};

// Sends registered memory; nobody touches its bytes but the device.
// All calls send the same, as the copy's ceiling copies the same.
struct UploadOperation {
  using Service = Bench;
  using Request = PlacedUploadRequest;
  using Response = UploadResponse;
  using Payload = Buffer;

  static Payload MakePayload(uint64_t bytes) {
    if (bytes == 0) return Buffer();
    BufferPool pool;
    absl::StatusOr<Buffer> payload = pool.Allocate(bytes);
    CHECK(payload.ok()) << payload.status();
    std::memset(payload->data(), 'v', bytes);
    return *std::move(payload);
  }
  static void Fill(const Payload& payload, Request* request) { request->set_payload(payload); }
  static absl::Status Call(Bench::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Upload(context, request, response);
  }
  static void Start(Bench::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Upload(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) { return response.bytes(); }
  static void Prepare(uint64_t, ClientContext*) {}
  static UploadRequest& MessageOf(Request& request) { return *request.mutable_message(); }
};

struct DownloadOperation {
  using Service = Bench;
  using Request = DownloadRequest;
  using Response = PlacedDownloadResponse;

  using Payload = uint64_t;  // Its size.

  static Payload MakePayload(uint64_t bytes) { return bytes; }
  static void Fill(const Payload& bytes, Request* request) { request->set_bytes(bytes); }
  static absl::Status Call(Bench::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Download(context, request, response);
  }
  static void Start(Bench::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Download(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) { return response.payload().size(); }
  // The response's memory travels in the request.
  static void Prepare(uint64_t bytes, ClientContext* context) {
    context->set_response_bytes_max(bytes);
  }
  static DownloadRequest& MessageOf(Request& request) { return request; }
};

// Of operations whose messages are built in memory of the channel, and of those that need none.
template <class Operation>
typename Operation::Payload MakePayload(Channel& channel, uint64_t bytes) {
  if constexpr (requires { Operation::MakePayload(channel, bytes); }) {
    return Operation::MakePayload(channel, bytes);
  } else {
    return Operation::MakePayload(bytes);
  }
}
template <class Operation>
void Fill(Channel& channel, const typename Operation::Payload& payload,
          typename Operation::Request* request) {
  if constexpr (requires { Operation::Fill(channel, payload, request); }) {
    Operation::Fill(channel, payload, request);
  } else {
    Operation::Fill(payload, request);
  }
}

}  // namespace verbena::bench
