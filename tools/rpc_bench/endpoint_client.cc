// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/endpoint_client.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/transport/address.h"

namespace verbena::bench {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout(3000);

}  // namespace

EndpointClient::EndpointClient(const Options& options)
    : options_(options), payload_(options.size_bytes, std::byte{'v'}) {
  start_ticks_.resize(options.concurrency + 1);
  waiting_.reserve(options.concurrency);
}

absl::StatusOr<std::unique_ptr<EndpointClient>> EndpointClient::Connect(const Options& options,
                                                                        Device& device) {
  std::unique_ptr<EndpointClient> client(new EndpointClient(options));
  if (absl::Status opened = client->Open(device); !opened.ok()) return opened;
  const size_t payload_max = client->endpoint_->frame_bytes_max() - sizeof(RequestHeader);
  if (options.size_bytes > payload_max) {
    return absl::ResourceExhaustedError(absl::StrCat("--size=", options.size_bytes,
                                                     ": an endpoint's slot takes ", payload_max,
                                                     " bytes of payload"));
  }
  return client;
}

absl::Status EndpointClient::Open(Device& device) {
  absl::StatusOr<Address> address = Address::Parse(options_.target);
  if (!address.ok()) return address.status();
  auto poller = Poller::Create(device, Endpoint::CompletionsMax(EndpointOptions()), clock_);
  if (!poller.ok()) return poller.status();
  poller_ = *std::move(poller);
  auto endpoint = poller_->CreateEndpoint(EndpointOptions(), this,
                                          [this](ConnectionEvent& event) { OnEvent(event); });
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = *std::move(endpoint);
  ConnectOptions connect = endpoint_->MakeConnectOptions(cycles_.ReadTicks());
  connect.timeout = kConnectTimeout;
  absl::Status asked =
      poller_->connection_manager().Connect(endpoint_->queue_pair(), *address, connect);
  if (!asked.ok()) return asked;
  return PollUntil([this] { return endpoint_->is_open(); });
}

EndpointClient::~EndpointClient() {
  if (endpoint_ != nullptr) poller_->Bury(std::move(endpoint_));
  if (poller_ == nullptr) return;
  const int64_t bound_ns = clock_.NowNs() + 1'000'000'000;
  while (poller_->endpoint_count() > 0 && clock_.NowNs() < bound_ns) poller_->RunOnce();
}

template <class Done>
absl::Status EndpointClient::PollUntil(Done done) {
  while (closed_.ok() && !done()) poller_->RunOnce();
  return closed_;
}

void EndpointClient::OnEvent(ConnectionEvent& event) {
  switch (event.type) {
    case ConnectionEvent::Type::kEstablished: {
      absl::StatusOr<Hello> peer = DecodeHello(event.private_data.span());
      if (peer.ok()) {
        endpoint_->Open(*peer, Endpoint::Side::kConnecting);
      } else {
        endpoint_->Fail(peer.status());
      }
      return;
    }
    case ConnectionEvent::Type::kRejected:
      endpoint_->Fail(event.private_data.size > 0 ? DecodeRefusal(event.private_data.span())
                                                  : event.status);
      return;
    case ConnectionEvent::Type::kDisconnected:
      endpoint_->Break(event.status);
      return;
    default:
      endpoint_->Fail(event.status);
      return;
  }
}

// ---- Frames ----

bool EndpointClient::SendEcho(uint32_t call_id, uint64_t now) {
  std::byte* frame = endpoint_->Reserve(sizeof(RequestHeader) + payload_.size());
  if (frame == nullptr) return false;
  start_ticks_[call_id] = now;
  WriteRequest(frame, kEndpointEcho, payload_);
  endpoint_->Commit(FrameKind::kRequest, call_id);
  return true;
}

void EndpointClient::SendOrWait(uint32_t call_id, uint64_t now) {
  if (waiting_.empty() && SendEcho(call_id, now)) return;
  waiting_.push_back(call_id);
  endpoint_->WantWritable();
}

Endpoint::Disposition EndpointClient::OnFrame(uint32_t, std::span<const std::byte> frame) {
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
  const std::span<const std::byte> payload = ResponsePayload(frame);
  if (header.kind != FrameKind::kResponse || header.call_id > options_.concurrency + 1) {
    endpoint_->FailProtocol(FrameDefect::kWrongDirection);
    return Endpoint::Disposition::kConsumed;
  }
  if (header.call_id > options_.concurrency) {
    std::memcpy(&stats_, payload.data(), std::min(sizeof(stats_), payload.size()));
    stats_arrived_ = true;
    return Endpoint::Disposition::kConsumed;
  }
  // Whoever receives a message uses it: the raw ping-pong copies, too.
  std::memcpy(payload_.data(), payload.data(), std::min(payload_.size(), payload.size()));
  const uint64_t now = cycles_.ReadTicks();
  result_->latency_ns.Record(cycles_.TicksToNs(now - start_ticks_[header.call_id]));
  if (now < end_ticks_ && calls_left_ > 0) [[likely]] {
    --calls_left_;
    // Not `now`: keeping the record is not part of the round trip, in the ceiling's neither.
    SendOrWait(header.call_id, cycles_.ReadTicks());
  } else {
    --in_flight_;
  }
  return Endpoint::Disposition::kConsumed;
}

void EndpointClient::OnWritable() {
  const uint64_t now = cycles_.ReadTicks();
  while (!waiting_.empty() && SendEcho(waiting_.back(), now)) waiting_.pop_back();
  if (!waiting_.empty()) endpoint_->WantWritable();
  poller_->WantService(endpoint_.get());
}

void EndpointClient::OnClosed(const absl::Status& why) {
  closed_ = why.ok() ? absl::UnavailableError("the server closed the connection") : why;
}

// ---- Measuring ----

absl::Status EndpointClient::Pass(const PassLimits& limits, PassResult* result) {
  const uint64_t start = cycles_.ReadTicks();
  result_ = result;
  result->latency_ns.Clear();
  end_ticks_ = start + cycles_.NsToTicks(static_cast<uint64_t>(limits.seconds * 1e9));
  in_flight_ = static_cast<uint32_t>(std::min<uint64_t>(options_.concurrency, limits.calls_max));
  calls_left_ = limits.calls_max - in_flight_;
  const uint32_t first_calls = in_flight_;
  for (uint32_t call_id = 1; call_id <= first_calls; ++call_id) {
    SendOrWait(call_id, cycles_.ReadTicks());
  }
  poller_->WantService(endpoint_.get());
  absl::Status status = PollUntil([this] { return in_flight_ == 0; });
  result->seconds = static_cast<double>(cycles_.TicksToNs(cycles_.ReadTicks() - start)) / 1e9;
  return status;
}

absl::Status EndpointClient::ServerUsage(UsageNow* usage, std::string* cores) {
  stats_arrived_ = false;
  std::byte* frame = endpoint_->Reserve(sizeof(RequestHeader));
  if (frame == nullptr) return absl::InternalError("no credit while nothing is in flight");
  WriteRequest(frame, kEndpointStats, {});
  endpoint_->Commit(FrameKind::kRequest, options_.concurrency + 1);
  poller_->WantService(endpoint_.get());
  if (absl::Status got = PollUntil([this] { return stats_arrived_; }); !got.ok()) return got;
  usage->cpu_ns = stats_.cpu_ns;
  if (stats_.counts_allocations != 0) usage->allocations = stats_.allocations;
  usage->rnr_events = stats_.receiver_not_ready;
  stats_.cores[sizeof(stats_.cores) - 1] = '\0';
  *cores = stats_.cores;
  return absl::OkStatus();
}

UsageNow EndpointClient::ClientUsage() const {
  UsageNow usage = ProcessUsage();
  usage.rnr_events = endpoint_->queue_pair().counters().receiver_not_ready;
  return usage;
}

}  // namespace verbena::bench
