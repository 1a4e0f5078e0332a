// SPDX-License-Identifier: Apache-2.0
//
// A protection domain: a key table, and the regions announced to every connected peer of the
// domain's queue pairs.
//
// Threads: as transport/memory.h says: any for registration; the tables have their own rules.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "verbena/transport/memory.h"
#include "verbena/transport/soft/key_table.h"
#include "verbena/transport/soft/shared_memory.h"

namespace verbena::soft {

class SoftDevice;
class SoftProtectionDomain;

class SoftMemoryRegion final : public MemoryRegion {
 public:
  SoftMemoryRegion(SoftProtectionDomain* domain, std::span<std::byte> bytes, AccessFlags access,
                   uint32_t remote_key, SealedMemory memory);
  ~SoftMemoryRegion() override;

  const SoftProtectionDomain* domain() const { return domain_; }
  // Whether peers can reach it: memory from AllocateMemory.
  bool shared() const { return memory_.fd.valid(); }

 private:
  SoftProtectionDomain* const domain_;
  SealedMemory memory_;
};

class SoftMemoryWindow final : public MemoryWindow {
 public:
  SoftMemoryWindow(SoftProtectionDomain* domain, uint32_t remote_key)
      : MemoryWindow(RemoteKey{remote_key}), domain_(domain), index_key_(remote_key) {}
  ~SoftMemoryWindow() override;

  const SoftProtectionDomain* domain() const { return domain_; }
  uint32_t index() const { return IndexOfKey(index_key_); }

 private:
  SoftProtectionDomain* const domain_;
  const uint32_t index_key_;
};

class SoftProtectionDomain final : public ProtectionDomain {
 public:
  static absl::StatusOr<std::unique_ptr<SoftProtectionDomain>> Create(SoftDevice* device);
  ~SoftProtectionDomain() override;

  absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(void* address, size_t bytes,
                                                               AccessFlags access) override;
  absl::StatusOr<std::unique_ptr<MemoryRegion>> AllocateMemory(size_t bytes, AccessFlags access,
                                                               bool prefault) override;
  absl::StatusOr<std::unique_ptr<MemoryWindow>> AllocateWindow() override;
  absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(
      const QueuePairOptions& options) override;
  absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(
      const SharedReceiveQueueOptions& options) override;

  SoftDevice& device() { return *device_; }
  KeyTable& keys() { return *keys_; }
  const KeyTable& keys() const { return *keys_; }

  // Ends what a region or window opened. For their destructors.
  void Retire(SoftMemoryRegion& region);
  void Retire(SoftMemoryWindow& window);
  void AddChild() { children_.fetch_add(1); }
  void DropChild() { children_.fetch_sub(1); }

 private:
  explicit SoftProtectionDomain(SoftDevice* device) : device_(device) {}
  absl::StatusOr<uint32_t> AllocateKey();

  SoftDevice* const device_;
  std::unique_ptr<KeyTable> keys_;  // Allocate and Free: under the control thread's mutex.
  std::atomic<int> children_{0};    // Regions, windows and queues alive: they must go first.
};

}  // namespace verbena::soft
