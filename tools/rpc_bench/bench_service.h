// SPDX-License-Identifier: Apache-2.0
//
// The service behind bench.proto. Threads: any, handlers touch nothing that is shared but atomics.

#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "tools/rpc_bench/bench.verbena.h"
#include "verbena/rpc/server.h"
#include "verbena/transport/buffer_pool.h"

namespace verbena::bench {

class BenchService final : public Bench::Service {
 public:
  // `cores`: where the server runs, for StatsResponse.
  explicit BenchService(std::string cores) : cores_(std::move(cores)) {}

  // The server whose counters Stats tells; borrowed, null while there is none.
  void set_server(const Server* server) { server_.store(server, std::memory_order_release); }

  absl::Status Echo(ServerContext* context, const EchoRequest* request,
                    EchoResponse* response) override;
  absl::Status Upload(ServerContext* context, const PlacedUploadRequest* request,
                      UploadResponse* response) override;
  absl::Status Download(ServerContext* context, const DownloadRequest* request,
                        PlacedDownloadResponse* response) override;
  absl::Status Stats(ServerContext* context, const StatsRequest* request,
                     StatsResponse* response) override;

 private:
  const std::string cores_;
  std::mutex mutex_;
  Buffer download_;  // All downloads are of the same memory, as the copy's ceiling is. Under mutex_.
  std::atomic<const Server*> server_{nullptr};
};

}  // namespace verbena::bench
