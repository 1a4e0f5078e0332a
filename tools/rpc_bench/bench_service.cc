// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/bench_service.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "verbena/tools/rpc_bench/bench_limits.h"
#include "verbena/tools/rpc_bench/usage.h"

namespace verbena::bench {

absl::Status BenchService::Echo(ServerContext*, const EchoRequest* request,
                                EchoResponse* response) {
  response->set_payload(request->payload());
  return absl::OkStatus();
}

absl::Status BenchService::Upload(ServerContext*, const PlacedUploadRequest* request,
                                  UploadResponse* response) {
  response->set_bytes(request->payload().size());
  return absl::OkStatus();
}

absl::Status BenchService::Download(ServerContext*, const DownloadRequest* request,
                                    PlacedDownloadResponse* response) {
  if (request->bytes() > kDownloadBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a download of ", request->bytes(), " bytes; at most ", kDownloadBytesMax));
  }
  if (request->bytes() == 0) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  if (download_.size() != request->bytes()) {
    absl::StatusOr<Buffer> payload = BufferPool().Allocate(request->bytes());
    if (!payload.ok()) return payload.status();
    std::memset(payload->data(), 'v', payload->size());
    download_ = *std::move(payload);
  }
  response->set_payload(download_);
  return absl::OkStatus();
}

absl::Status BenchService::Stats(ServerContext*, const StatsRequest*, StatsResponse* response) {
  const UsageNow usage = ProcessUsage();
  response->set_cpu_ns(usage.cpu_ns);
  response->set_allocations(usage.allocations.value_or(0));
  response->set_counts_allocations(usage.allocations.has_value());
  if (const Server* server = server_.load(std::memory_order_acquire)) {
    response->set_receiver_not_ready(server->statistics().receiver_not_ready);
  }
  response->set_cores(cores_);
  return absl::OkStatus();
}

}  // namespace verbena::bench
