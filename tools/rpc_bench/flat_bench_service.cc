// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/flat_bench_service.h"

#include "absl/strings/str_cat.h"
#include "verbena/tools/rpc_bench/bench_limits.h"
#include "verbena/tools/rpc_bench/flat_payload.h"

namespace verbena::bench {

absl::Status FlatBenchService::Echo(ServerContext*, const FlatMessage<flat::EchoMessage>* request,
                                    FlatMessage<flat::EchoMessage>* response) {
  *response = *request;
  return absl::OkStatus();
}

absl::Status FlatBenchService::Rebuild(ServerContext* context,
                                       const FlatMessage<flat::EchoMessage>* request,
                                       FlatMessage<flat::EchoMessage>* response) {
  const flatbuffers::Vector<uint8_t>* const payload = (*request)->payload();
  if (payload == nullptr) return absl::InvalidArgumentError("an echo without a payload");
  FlatMessageBuilder builder(*context);
  builder.Finish(
      flat::CreateEchoMessage(builder, builder.CreateVector(payload->data(), payload->size())));
  *response = builder.ReleaseMessage<flat::EchoMessage>();
  return absl::OkStatus();
}

absl::Status FlatBenchService::Upload(ServerContext* context,
                                      const FlatMessage<flat::UploadRequest>* request,
                                      FlatMessage<flat::UploadResponse>* response) {
  const flatbuffers::Vector<uint8_t>* const payload = (*request)->payload();
  FlatMessageBuilder builder(*context);
  builder.Finish(flat::CreateUploadResponse(builder, payload == nullptr ? 0 : payload->size()));
  *response = builder.ReleaseMessage<flat::UploadResponse>();
  return absl::OkStatus();
}

absl::Status FlatBenchService::Download(ServerContext* context,
                                        const FlatMessage<flat::DownloadRequest>* request,
                                        FlatMessage<flat::DownloadResponse>* response) {
  const uint64_t bytes = (*request)->bytes();
  if (bytes > kDownloadBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a download of ", bytes, " bytes; at most ", kDownloadBytesMax));
  }
  std::lock_guard lock(mutex_);
  if (download_.empty() || download_->payload()->size() != bytes) {
    download_ = BuildPayload<flat::DownloadResponse>(*context, bytes, flat::CreateDownloadResponse);
  }
  *response = download_;
  return absl::OkStatus();
}

}  // namespace verbena::bench
