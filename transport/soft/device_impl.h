// SPDX-License-Identifier: Apache-2.0
//
// The device: capabilities, the control thread, and what counts per device. Threads: any.

#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "verbena/transport/device.h"
#include "verbena/transport/soft/async_events.h"
#include "verbena/transport/soft/control_thread.h"

namespace verbena::soft {

class SoftDevice final : public Device {
 public:
  static absl::StatusOr<std::unique_ptr<SoftDevice>> Create(bool membarrier_wanted);
  ~SoftDevice() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  bool ServesScheme(std::string_view scheme) const override { return scheme == "shm"; }
  absl::StatusOr<std::unique_ptr<ProtectionDomain>> AllocateProtectionDomain() override;
  absl::StatusOr<std::unique_ptr<CompletionChannel>> CreateCompletionChannel() override;
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(
      uint32_t depth, CompletionChannel* channel) override;
  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager() override;
  bool PollAsyncEvent(AsyncEvent* event) override { return async_events_.Pop(event); }
  int async_fd() const override { return async_events_.fd(); }

  ControlThread& control() { return *control_; }
  void PushAsyncEvent(const AsyncEvent& event) { async_events_.Push(event); }
  AsyncEvents& async_events() { return async_events_; }
  uint32_t NextQueuePairNumber();

  // Errors: RESOURCE_EXHAUSTED naming queue_pairs_max.
  absl::Status AddQueuePair();
  void DropQueuePair() { queue_pairs_.fetch_sub(1); }

 private:
  explicit SoftDevice(UniqueFd async_event) : async_events_(std::move(async_event)) {}

  Capabilities capabilities_;
  bool membarrier_ = false;
  std::atomic<uint32_t> queue_pairs_{0};
  std::atomic<uint32_t> last_number_{0};
  AsyncEvents async_events_;
  std::unique_ptr<ControlThread> control_;  // Ends before the rest.
};

}  // namespace verbena::soft
