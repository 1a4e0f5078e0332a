// SPDX-License-Identifier: Apache-2.0
//
// A device in front of another one that does what only networks and hardware do: packets that
// vanish, sends that are on their way for long, a completion queue that breaks. Its queue pairs
// keep the model's promises: what is outstanding when a pair moves to kError completes as flushed.
//
// Threads: the switches, any; everything else as the device behind it. Lifetime: outlives
// everything made from it.

#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "verbena/transport/device.h"

namespace verbena {

class FaultyQueuePair;

class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(std::unique_ptr<Device> behind);
  ~FaultyDevice() override;

  // ---- Switches ----

  // For a change before anything is made from it.
  Capabilities& mutable_capabilities() { return capabilities_; }
  // While true nothing gets out and nothing comes in, connection requests included, and nobody is
  // told. What was sent meanwhile arrives afterwards; what would have come in is lost.
  void set_network_lost(bool lost) { network_lost_ = lost; }
  bool network_lost() const { return network_lost_; }
  // While true sends are accepted, and neither arrive nor complete.
  void set_sends_held(bool held) { sends_held_ = held; }
  bool holds_sends() const { return sends_held_ || network_lost_; }
  // The same for READs and WRITEs only; what is behind one in its queue goes on.
  void set_one_sided_held(bool held) { one_sided_held_ = held; }
  bool one_sided_held() const { return one_sided_held_; }
  // All completion queues are broken from now on: no completion comes any more.
  void BreakQueues() { queues_broken_ = true; }
  bool queues_broken() const { return queues_broken_; }
  // Arming fails from now on, and nothing else.
  void BreakArming() { arming_broken_ = true; }
  bool arming_broken() const { return arming_broken_; }

  // Work requests of that opcode that were posted.
  uint64_t posted(Opcode opcode) const { return posted_[static_cast<size_t>(opcode)]; }
  // Sends that found no place. As in hardware, and unlike the software device, a place is free
  // again when the completion of its request or of a later one was polled.
  uint64_t refused_posts() const { return refused_posts_; }

  // ---- Device ----

  const Capabilities& capabilities() const override { return capabilities_; }
  bool ServesScheme(std::string_view scheme) const override {
    return behind_->ServesScheme(scheme);
  }
  absl::StatusOr<std::unique_ptr<ProtectionDomain>> AllocateProtectionDomain() override;
  absl::StatusOr<std::unique_ptr<CompletionChannel>> CreateCompletionChannel() override {
    return behind_->CreateCompletionChannel();
  }
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(
      uint32_t depth, CompletionChannel* channel) override;
  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager() override;
  bool PollAsyncEvent(AsyncEvent* event) override { return behind_->PollAsyncEvent(event); }
  int async_fd() const override { return behind_->async_fd(); }

  // ---- For what it makes ----

  void CountRefusal() { ++refused_posts_; }
  void CountPost(Opcode opcode) { ++posted_[static_cast<size_t>(opcode)]; }
  void Add(QueuePair* behind, FaultyQueuePair* pair);
  void Remove(QueuePair* behind);
  FaultyQueuePair* Find(const QueuePair* behind);
  FaultyQueuePair* FindByNumber(uint32_t number);

 private:
  const std::unique_ptr<Device> behind_;
  Capabilities capabilities_;
  std::atomic<bool> network_lost_{false};
  std::atomic<bool> sends_held_{false};
  std::atomic<bool> one_sided_held_{false};
  std::atomic<bool> queues_broken_{false};
  std::atomic<bool> arming_broken_{false};
  std::atomic<uint64_t> posted_[16] = {};
  std::atomic<uint64_t> refused_posts_{0};
  std::mutex mutex_;
  std::map<const QueuePair*, FaultyQueuePair*> pairs_;  // By the pair behind. Guarded by mutex_.
};

}  // namespace verbena
