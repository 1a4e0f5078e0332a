// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/server.h"

#include <utility>

#include "verbena/rpc/server_runtime.h"

namespace verbena {

Server::Server(std::unique_ptr<ServerRuntime> runtime) : runtime_(std::move(runtime)) {}

Server::~Server() { Shutdown(); }

void Server::Shutdown(std::chrono::milliseconds grace) { runtime_->Shutdown(grace); }

void Server::Wait() { runtime_->Wait(); }

const std::vector<Address>& Server::addresses() const { return runtime_->addresses(); }

ServerStatistics Server::statistics() const { return runtime_->statistics(); }

absl::StatusOr<std::unique_ptr<Server>> ServerBuilder::BuildAndStart() {
  auto runtime = ServerRuntime::Start(options_);
  if (!runtime.ok()) return runtime.status();
  return std::unique_ptr<Server>(new Server(*std::move(runtime)));
}

}  // namespace verbena
