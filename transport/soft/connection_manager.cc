// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/transport/soft/connection_manager_impl.h"
#include "verbena/transport/soft/control_thread.h"
#include "verbena/transport/soft/queue_pair.h"

namespace verbena::soft {
namespace {

absl::Status CheckScheme(const Address& address) {
  if (address.scheme == "shm" && !address.host.empty() && address.host.size() <= 90) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the software device serves shm:NAME and not ", address.ToString()));
}

}  // namespace

SoftConnectionRequest::~SoftConnectionRequest() {
  if (link_ != 0) control_->Reject(link_, {});
}

SoftListener::~SoftListener() { control_->StopListening(id_); }

SoftConnectionManager::SoftConnectionManager(ControlThread* control, UniqueFd event)
    : control_(control), events_(std::move(event)) {
  control_->AddManager(this);
}

SoftConnectionManager::~SoftConnectionManager() {
  // First, so that nothing is pushed while the events go; requests among them reject themselves.
  control_->ForgetManager(this);
}

absl::StatusOr<std::unique_ptr<Listener>> SoftConnectionManager::Listen(const Address& address) {
  absl::Status status = CheckScheme(address);
  if (!status.ok()) return status;
  absl::StatusOr<uint64_t> id = control_->Listen(this, address);
  if (!id.ok()) return id.status();
  return std::make_unique<SoftListener>(control_, *id, address);
}

absl::Status SoftConnectionManager::Connect(QueuePair& queue_pair, const Address& address,
                                            const ConnectOptions& options) {
  absl::Status status = CheckScheme(address);
  if (!status.ok()) return status;
  return control_->Connect(this, &static_cast<SoftQueuePair&>(queue_pair), address, options);
}

absl::Status SoftConnectionManager::Accept(std::unique_ptr<ConnectionRequest> request,
                                           QueuePair& queue_pair, const ConnectOptions& options) {
  auto& soft = static_cast<SoftConnectionRequest&>(*request);
  if (soft.control() != control_) {
    return absl::InvalidArgumentError("the request came from another device");
  }
  const uint64_t link = soft.Spend();
  absl::Status status =
      control_->Accept(this, link, &static_cast<SoftQueuePair&>(queue_pair), options);
  if (!status.ok()) control_->Reject(link, {});
  return status;
}

absl::Status SoftConnectionManager::Reject(std::unique_ptr<ConnectionRequest> request,
                                           const PrivateData& reason) {
  if (reason.size > kPrivateDataBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("private data has at most ", kPrivateDataBytesMax, " bytes"));
  }
  control_->Reject(static_cast<SoftConnectionRequest&>(*request).Spend(), reason);
  return absl::OkStatus();
}

void SoftConnectionManager::Disconnect(QueuePair& queue_pair) {
  control_->Disconnect(&static_cast<SoftQueuePair&>(queue_pair));
}

}  // namespace verbena::soft
