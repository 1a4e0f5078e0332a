// SPDX-License-Identifier: Apache-2.0
//
// The calls that are measured, each as a struct of static functions, so that a loop over one of
// them is compiled for it and calls the stub directly. No state; any thread.

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tools/rpc_bench/bench.verbena.h"

namespace verbena::bench {

struct EchoOperation {
  using Request = EchoRequest;
  using Response = EchoResponse;

  static void Fill(uint64_t bytes, Request* request) {
    request->mutable_payload()->assign(bytes, 'v');
  }
  static absl::Status Call(Bench::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Echo(context, request, response);
  }
  static void Start(Bench::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Echo(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) { return response.payload().size(); }
};

struct UploadOperation {
  using Request = UploadRequest;
  using Response = UploadResponse;

  static void Fill(uint64_t bytes, Request* request) {
    request->mutable_payload()->assign(bytes, 'v');
  }
  static absl::Status Call(Bench::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Upload(context, request, response);
  }
  static void Start(Bench::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Upload(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) { return response.bytes(); }
};

struct DownloadOperation {
  using Request = DownloadRequest;
  using Response = DownloadResponse;

  static void Fill(uint64_t bytes, Request* request) { request->set_bytes(bytes); }
  static absl::Status Call(Bench::Stub& stub, ClientContext* context, const Request& request,
                           Response* response) {
    return stub.Download(context, request, response);
  }
  static void Start(Bench::Stub& stub, ClientContext* context, const Request* request,
                    Response* response, DoneCallback done) {
    stub.async()->Download(context, request, response, std::move(done));
  }
  static uint64_t BytesMoved(const Response& response) { return response.payload().size(); }
};

}  // namespace verbena::bench
