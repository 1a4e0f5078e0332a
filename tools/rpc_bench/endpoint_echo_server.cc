// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/endpoint_echo_server.h"

#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "verbena/tools/rpc_bench/cores.h"
#include "verbena/tools/rpc_bench/device.h"
#include "verbena/tools/rpc_bench/endpoint_frames.h"
#include "verbena/tools/rpc_bench/usage.h"
#include "verbena/transport/address.h"
#include "verbena/transport/endpoint.h"

namespace verbena::bench {

class EndpointEchoServer::Connection final : public Endpoint::Handler {
 public:
  explicit Connection(EndpointEchoServer* server) : server_(server) {}

  absl::Status Accept(std::unique_ptr<ConnectionRequest> request, const Hello& peer) {
    peer_ = peer;
    auto endpoint = server_->poller_->CreateEndpoint(
        EndpointOptions(), this, [this](ConnectionEvent& event) { OnEvent(event); });
    if (!endpoint.ok()) return endpoint.status();
    endpoint_ = *std::move(endpoint);
    return server_->poller_->connection_manager().Accept(
        std::move(request), endpoint_->queue_pair(), endpoint_->MakeConnectOptions(peer.epoch));
  }

  void Bury() {
    if (endpoint_ == nullptr) return;
    waiting_from_ = waiting_to_ = 0;
    receiver_not_ready_ = receiver_not_ready();
    server_->poller_->Bury(std::move(endpoint_));
  }
  bool is_over() const { return endpoint_ == nullptr; }
  uint64_t receiver_not_ready() const {
    return endpoint_ == nullptr ? receiver_not_ready_
                                : endpoint_->queue_pair().counters().receiver_not_ready;
  }

 private:
  void OnEvent(ConnectionEvent& event) {
    if (event.type == ConnectionEvent::Type::kEstablished) {
      endpoint_->Open(peer_, Endpoint::Side::kAccepting);
    } else {
      endpoint_->Break(event.status);
    }
  }

  Endpoint::Disposition OnFrame(uint32_t slot, std::span<const std::byte> frame) override {
    if (reinterpret_cast<const FrameHeader*>(frame.data())->kind != FrameKind::kRequest) {
      endpoint_->FailProtocol(FrameDefect::kWrongDirection);
      return Endpoint::Disposition::kConsumed;
    }
    if (waiting_from_ == waiting_to_ && Answer(frame)) return Endpoint::Disposition::kConsumed;
    waiting_[waiting_to_++ % waiting_.size()] = {slot, frame};
    endpoint_->WantWritable();
    return Endpoint::Disposition::kKept;
  }

  void OnWritable() override {
    while (waiting_from_ != waiting_to_) {
      const Waiting& next = waiting_[waiting_from_ % waiting_.size()];
      if (!Answer(next.frame)) {
        endpoint_->WantWritable();
        break;
      }
      endpoint_->ReleaseReceive(next.slot);
      ++waiting_from_;
    }
    server_->poller_->WantService(endpoint_.get());
  }

  void OnClosed(const absl::Status&) override { Bury(); }

  // False: no room now, or the client was faster than our own event that it is connected.
  bool Answer(std::span<const std::byte> frame) {
    if (!endpoint_->CanSend()) return false;
    const auto& request = *reinterpret_cast<const RequestHeader*>(frame.data());
    if (request.method_id == kEndpointStats) {
      const EndpointStats stats = Stats();
      return Send(request.frame.call_id, std::as_bytes(std::span(&stats, 1)));
    }
    return Send(request.frame.call_id, RequestPayload(frame));
  }

  bool Send(uint32_t call_id, std::span<const std::byte> payload) {
    std::byte* response = endpoint_->Reserve(sizeof(ResponseHeader) + payload.size());
    if (response == nullptr) return false;
    WriteResponse(response, payload);
    endpoint_->Commit(FrameKind::kResponse, call_id);
    return true;
  }

  EndpointStats Stats() const {
    const UsageNow usage = ProcessUsage();
    EndpointStats stats;
    stats.cpu_ns = usage.cpu_ns;
    stats.allocations = usage.allocations.value_or(0);
    stats.counts_allocations = usage.allocations.has_value();
    stats.receiver_not_ready = server_->ReceiverNotReady();
    std::snprintf(stats.cores, sizeof(stats.cores), "%s", server_->cores_.c_str());
    return stats;
  }

  struct Waiting {
    uint32_t slot;
    std::span<const std::byte> frame;
  };

  EndpointEchoServer* server_;
  Hello peer_;
  std::unique_ptr<Endpoint> endpoint_;  // Null when it is over.
  uint64_t receiver_not_ready_ = 0;     // Its last count.
  // Frames that found no room for their answer, oldest first: a ring, counted since the beginning.
  // Each keeps a receive slot, so there are never more than slots.
  std::vector<Waiting> waiting_ = std::vector<Waiting>(EndpointOptions().ring_depth);
  uint32_t waiting_from_ = 0;
  uint32_t waiting_to_ = 0;
};

absl::StatusOr<std::unique_ptr<EndpointEchoServer>> EndpointEchoServer::Start(
    Device& device, const Options& options) {
  absl::StatusOr<Address> address = Address::Parse(options.listen);
  if (!address.ok()) return address.status();
  std::unique_ptr<EndpointEchoServer> server(new EndpointEchoServer());
  server->cores_ = absl::StrJoin(AllowedCores(), ",");
  auto poller = Poller::Create(
      device, kConnectionsMax * Endpoint::CompletionsMax(EndpointOptions()), server->clock_);
  if (!poller.ok()) return poller.status();
  server->poller_ = *std::move(poller);
  server->poller_->set_on_connect_request(
      [server = server.get()](auto request) { server->Accept(std::move(request)); });
  auto listener = server->poller_->connection_manager().Listen(*address);
  if (!listener.ok()) return listener.status();
  server->listener_ = *std::move(listener);
  PollOptions poll;
  poll.mode = ToPollMode(options.poll);
  server->driver_ =
      std::make_unique<PollerDriver>(*server->poller_, poll, PollerDriver::Kind::kDedicated,
                                     options.cpus.empty() ? -1 : options.cpus.front());
  return server;
}

EndpointEchoServer::~EndpointEchoServer() {
  driver_.reset();  // From here on this thread has the poller.
  listener_.reset();
  if (poller_ == nullptr) return;
  for (auto& connection : connections_) connection->Bury();
  const auto bound = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (poller_->endpoint_count() > 0 && std::chrono::steady_clock::now() < bound) {
    poller_->RunOnce();
  }
}

void EndpointEchoServer::Accept(std::unique_ptr<ConnectionRequest> request) {
  std::erase_if(connections_, [](const auto& connection) { return connection->is_over(); });
  ConnectionManager& manager = poller_->connection_manager();
  absl::StatusOr<Hello> peer = DecodeHello(request->private_data().span());
  Refusal refusal;
  if (!peer.ok()) {
    const bool is_version = peer.status().code() == absl::StatusCode::kFailedPrecondition;
    refusal.reason = is_version ? Refusal::Reason::kVersion : Refusal::Reason::kMalformed;
    refusal.limit = is_version ? kWireVersion : 0;
    manager.Reject(std::move(request), EncodeRefusal(refusal)).IgnoreError();
    return;
  }
  if (poller_->endpoint_count() >= kConnectionsMax) {
    refusal.reason = Refusal::Reason::kConnections;
    refusal.limit = kConnectionsMax;
    manager.Reject(std::move(request), EncodeRefusal(refusal)).IgnoreError();
    return;
  }
  connections_.push_back(std::make_unique<Connection>(this));
  absl::Status accepted = connections_.back()->Accept(std::move(request), *peer);
  if (accepted.ok()) return;
  LOG(WARNING) << "a connection could not be accepted: " << accepted;
  connections_.back()->Bury();
}

uint64_t EndpointEchoServer::ReceiverNotReady() const {
  uint64_t events = 0;
  for (const auto& connection : connections_) events += connection->receiver_not_ready();
  return events;
}

}  // namespace verbena::bench
