// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/server_poller.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace verbena {

ServerPoller::ServerPoller(const ServerOptions& options, const MethodTable& methods)
    : options_(options), methods_(methods), calls_(methods.size()) {}

absl::StatusOr<std::unique_ptr<ServerPoller>> ServerPoller::Create(std::shared_ptr<Device> device,
                                                                   const ServerOptions& options,
                                                                   const MethodTable& methods,
                                                                   int cpu) {
  std::unique_ptr<ServerPoller> self(new ServerPoller(options, methods));
  const uint64_t completions =
      uint64_t{options.connections_max} * Endpoint::CompletionsMax(options.endpoint);
  auto poller =
      Poller::Create(*device,
                     static_cast<uint32_t>(std::min<uint64_t>(
                         completions, device->capabilities().completion_queue_depth_max)),
                     self->clock_, device);
  if (!poller.ok()) return poller.status();
  self->poller_ = *std::move(poller);
  self->driver_ = std::make_unique<PollerDriver>(*self->poller_, options.poll,
                                                 PollerDriver::Kind::kDedicated, cpu);
  return self;
}

ServerPoller::~ServerPoller() {
  if (driver_ != nullptr) driver_->Join();
  driver_.reset();  // From here on this thread owns the poller.
  if (poller_ == nullptr) return;
  while (poller_->HasTasks()) poller_->RunOnce();  // They own what they carry.
  connections_.clear();
  poller_->Drain();
}

// ---- Any thread ----

void ServerPoller::AcceptLater(std::unique_ptr<ConnectionRequest> request, const Hello& hello,
                               uint64_t epoch) {
  counters_.accepting.fetch_add(1);
  struct Accept {
    ServerPoller* self;
    std::unique_ptr<ConnectionRequest> request;
    Hello hello;
    uint64_t epoch;
  };
  driver_->Submit({[](void* argument) {
                     std::unique_ptr<Accept> accept(static_cast<Accept*>(argument));
                     accept->self->AcceptOnPoller(std::move(accept->request), accept->hello,
                                                  accept->epoch);
                   },
                   new Accept{this, std::move(request), hello, epoch}});
}

void ServerPoller::CancelCalls() {
  driver_->Submit({[](void* argument) {
                     for (auto& connection : static_cast<ServerPoller*>(argument)->connections_) {
                       connection->CancelCalls();
                     }
                   },
                   this});
}

void ServerPoller::CloseConnections() {
  driver_->Submit({[](void* argument) {
                     for (auto& connection : static_cast<ServerPoller*>(argument)->connections_) {
                       connection->Close();
                     }
                   },
                   this});
}

// ---- On the poller ----

void ServerPoller::AcceptOnPoller(std::unique_ptr<ConnectionRequest> request, const Hello& hello,
                                  uint64_t epoch) {
  auto connection = std::make_unique<ServerConnection>(*this);
  if (shutting_down()) {
    // Destroying the request rejects it.
  } else if (absl::Status status = connection->Accept(std::move(request), hello, epoch);
             !status.ok()) {
    // A client that left before we came to it is no trouble.
    if (!absl::IsCancelled(status))
      LOG(WARNING) << "a connection could not be accepted: " << status;
  } else {
    connections_.push_back(std::move(connection));
    counters_.connections.Add(1);
  }
  counters_.accepting.fetch_sub(1);  // After the line above, so that it is never counted nowhere.
}

// May be called from inside the connection, so it is freed in a later step.
void ServerPoller::OnConnectionClosed() {
  if (free_submitted_) return;
  free_submitted_ = poller_->Submit({[](void* argument) {
                                       auto* self = static_cast<ServerPoller*>(argument);
                                       self->free_submitted_ = false;
                                       self->FreeFinishedOnPoller();
                                     },
                                     this});
}

void ServerPoller::FreeFinishedOnPoller() {
  std::erase_if(connections_, [](const auto& connection) { return connection->finished(); });
  counters_.connections.Set(connections_.size());
}

}  // namespace verbena
