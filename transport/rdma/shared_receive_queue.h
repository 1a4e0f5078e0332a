// SPDX-License-Identifier: Apache-2.0
//
// A shared receive queue of verbs. It counts its receives itself, since a provider may round the
// depth up and completion queues are sized by what was asked for.
//
// Threads: any for PostRecv and Take (pairs of several pollers may share it); a mutex keeps the
// table. Source: ibv_create_srq(3), ibv_modify_srq(3).

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/transport/queue_pair.h"
#include "verbena/transport/rdma/handles.h"

namespace verbena::rdma {

class RdmaDevice;
class RdmaProtectionDomain;

class RdmaSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  static absl::StatusOr<std::unique_ptr<RdmaSharedReceiveQueue>> Create(
      RdmaProtectionDomain* domain, const SharedReceiveQueueOptions& options);
  ~RdmaSharedReceiveQueue() override;

  absl::Status PostRecv(std::span<const RecvWorkRequest> requests, size_t* accepted) override;
  absl::Status ArmLimit(uint32_t limit) override;

  // A receive came back: frees its slot and returns the user's wr_id.
  uint64_t Take(uint32_t slot);
  ibv_srq* handle() const { return queue_.get(); }
  uint32_t depth() const { return depth_; }

 private:
  RdmaSharedReceiveQueue(RdmaProtectionDomain* domain, const SharedReceiveQueueOptions& options);
  absl::Status PostOneLocked(const RecvWorkRequest& request);

  RdmaProtectionDomain* const domain_;
  RdmaDevice* const device_;
  const uint32_t depth_;
  const uint32_t sge_max_;
  uint32_t number_ = 0;  // In the device's table.
  std::mutex mutex_;
  std::vector<uint64_t> user_ids_;    // By slot.
  std::vector<uint32_t> free_slots_;  // What is not in it is posted.
  SharedReceiveHandle queue_;
};

}  // namespace verbena::rdma
