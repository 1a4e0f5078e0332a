// SPDX-License-Identifier: Apache-2.0
//
// The service behind flat_bench.fbs. Threads: any.

#pragma once

#include <mutex>

#include "tools/rpc_bench/flat_bench.verbena.h"
#include "verbena/rpc/flat_message.h"

namespace verbena::bench {

class FlatBenchService final : public flat::FlatBench::Service {
 public:
  absl::Status Echo(ServerContext* context, const FlatMessage<flat::EchoMessage>* request,
                    FlatMessage<flat::EchoMessage>* response) override;
  absl::Status Rebuild(ServerContext* context, const FlatMessage<flat::EchoMessage>* request,
                       FlatMessage<flat::EchoMessage>* response) override;
  absl::Status Upload(ServerContext* context, const FlatMessage<flat::UploadRequest>* request,
                      FlatMessage<flat::UploadResponse>* response) override;
  absl::Status Download(ServerContext* context, const FlatMessage<flat::DownloadRequest>* request,
                        FlatMessage<flat::DownloadResponse>* response) override;

 private:
  std::mutex mutex_;
  // All downloads are of the same memory, as the copy's ceiling is. Under mutex_.
  FlatMessage<flat::DownloadResponse> download_;
};

}  // namespace verbena::bench
