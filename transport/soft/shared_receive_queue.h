// SPDX-License-Identifier: Apache-2.0
//
// A shared receive queue lives in this process only. A queue pair attached to it shows its peer a
// small window of staged receives, never more than the shared queue holds at that moment; an
// arriving message takes the oldest shared receive when it is polled. So windows may promise more
// than there is; a message that finds the queue empty waits in its segment for the next PostRecv.
//
// Threads: one at a time, that of all its queue pairs.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "verbena/transport/queue_pair.h"
#include "verbena/transport/soft/queue_pair.h"

namespace verbena::soft {

class SoftSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  SoftSharedReceiveQueue(SoftProtectionDomain* domain, const SharedReceiveQueueOptions& options);
  ~SoftSharedReceiveQueue() override;

  absl::Status PostRecv(std::span<const RecvWorkRequest> requests, size_t* accepted) override;
  absl::Status ArmLimit(uint32_t limit) override;

  // For queue pairs: -----------------------------------------------------------------------------

  void Attach(SoftQueuePair* queue_pair) { attached_.push_back(queue_pair); }
  void Detach(SoftQueuePair* queue_pair);
  uint32_t available() const { return tail_ - head_; }
  uint32_t depth() const { return depth_; }
  // The longest receive posted since the queue was last empty: what peers are told. With receives
  // of one size, the usual case, a message too long is found by its sender already; else the
  // receiver finds it, and the sender learns of it by the end of the connection.
  uint32_t longest() const { return longest_; }
  bool Take(PostedReceive* posted);

  // Calls PublishShared of the queue pair when more is posted.
  void AddHungry(SoftQueuePair* queue_pair);
  // Wakes its receive queue then: a message of it waits for a receive.
  void AddWaiting(SoftQueuePair* queue_pair);

 private:
  SoftProtectionDomain* const domain_;
  const uint32_t depth_;
  const uint32_t sge_max_;
  const uint32_t capacity_;  // A power of two.
  std::unique_ptr<PostedReceive[]> ring_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t longest_ = 0;
  uint32_t limit_ = 0;
  std::vector<SoftQueuePair*> attached_;
  std::vector<SoftQueuePair*> hungry_;
  std::vector<SoftQueuePair*> waiting_;
  std::vector<SoftQueuePair*> scratch_;
};

// What a receive of the domain looks like: its flags and length. `staging` says that it can only
// be filled from a staging slot.
void DescribeReceive(const KeyTable& keys, const RecvWorkRequest& request, bool staging,
                     PostedReceive* posted);

}  // namespace verbena::soft
