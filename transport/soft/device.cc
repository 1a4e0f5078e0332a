// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/barrier.h"
#include "verbena/transport/soft/completion_channel.h"
#include "verbena/transport/soft/completion_queue.h"
#include "verbena/transport/soft/connection_manager_impl.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/device_impl.h"
#include "verbena/transport/soft/key_table.h"
#include "verbena/transport/soft/protection_domain.h"

namespace verbena::soft {
namespace {

Capabilities SoftCapabilities() {
  Capabilities capabilities;
  capabilities.device = "soft";
  capabilities.wire = "shm";
  capabilities.write_with_imm = true;
  capabilities.send_with_imm = true;
  capabilities.send_with_invalidate = true;
  capabilities.atomics = true;
  capabilities.memory_windows = true;
  capabilities.shared_receive_queue = true;
  capabilities.receiver_not_ready = true;
  capabilities.error_tells_sender = true;
  capabilities.remote_access_to_user_memory = false;
  capabilities.user_memory_receive_bytes_max = kStagingBytes;
  capabilities.shared_receive_bytes_max = kStagingBytes;
  capabilities.message_bytes_max = kMessageBytesMax;
  capabilities.queue_pairs_max = kQueuePairsMax;
  capabilities.queue_depth_max = kQueueDepthMax;
  capabilities.completion_queue_depth_max = kCompletionQueueDepthMax;
  capabilities.send_sge_max = kSendSgeMax;
  capabilities.recv_sge_max = kReceiveSgeMax;
  capabilities.read_sge_max = kSendSgeMax;
  capabilities.inline_bytes_max = kInlineBytesMax;
  capabilities.private_data_bytes_max = kPrivateDataBytesMax;
  return capabilities;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SoftDevice>> SoftDevice::Create(bool membarrier_wanted) {
  absl::StatusOr<UniqueFd> event = CreateEvent();
  if (!event.ok()) return absl::UnavailableError(event.status().message());
  // A first key table shows whether the kernel has what every domain needs.
  absl::StatusOr<std::unique_ptr<KeyTable>> probe = KeyTable::Create();
  if (!probe.ok()) return absl::UnavailableError(probe.status().message());
  std::unique_ptr<SoftDevice> device(new SoftDevice(*std::move(event)));
  device->capabilities_ = SoftCapabilities();
  // Registered in any case: peers that have it rely on ours only if we say so at connect.
  device->membarrier_ = membarrier_wanted && RegisterForBarrier();
  absl::StatusOr<std::unique_ptr<ControlThread>> control =
      ControlThread::Start(device->membarrier_, &device->async_events_);
  if (!control.ok()) return absl::UnavailableError(control.status().message());
  device->control_ = *std::move(control);
  return device;
}

SoftDevice::~SoftDevice() {
  CHECK_EQ(queue_pairs_.load(), 0u) << "queue pairs outlive their device";
}

absl::StatusOr<std::unique_ptr<ProtectionDomain>> SoftDevice::AllocateProtectionDomain() {
  absl::StatusOr<std::unique_ptr<SoftProtectionDomain>> domain = SoftProtectionDomain::Create(this);
  if (!domain.ok()) return domain.status();
  return *std::move(domain);
}

absl::StatusOr<std::unique_ptr<CompletionChannel>> SoftDevice::CreateCompletionChannel() {
  absl::StatusOr<std::unique_ptr<SoftCompletionChannel>> channel = SoftCompletionChannel::Create();
  if (!channel.ok()) return channel.status();
  return *std::move(channel);
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> SoftDevice::CreateCompletionQueue(
    uint32_t depth, CompletionChannel* channel) {
  if (depth == 0 || depth > kCompletionQueueDepthMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a completion queue has 1 to completion_queue_depth_max, ",
                     kCompletionQueueDepthMax, ", entries and not ", depth));
  }
  return std::make_unique<SoftCompletionQueue>(depth, static_cast<SoftCompletionChannel*>(channel),
                                               control_.get(), membarrier_);
}

absl::StatusOr<std::unique_ptr<ConnectionManager>> SoftDevice::CreateConnectionManager() {
  absl::StatusOr<UniqueFd> event = CreateEvent();
  if (!event.ok()) return event.status();
  return std::make_unique<SoftConnectionManager>(control_.get(), *std::move(event));
}

uint32_t SoftDevice::NextQueuePairNumber() {
  // 0 means "any" in a key table. Numbers wrap after 2^32 queue pairs; those alive are few.
  uint32_t number = 0;
  while (number == 0) number = last_number_.fetch_add(1) + 1;
  return number;
}

absl::Status SoftDevice::AddQueuePair() {
  if (queue_pairs_.fetch_add(1) < kQueuePairsMax) return absl::OkStatus();
  queue_pairs_.fetch_sub(1);
  return absl::ResourceExhaustedError(
      absl::StrCat("the device has queue_pairs_max, ", kQueuePairsMax, ", queue pairs"));
}

}  // namespace verbena::soft
