// SPDX-License-Identifier: Apache-2.0
//
// Protection domains, memory regions and windows of verbs.
//
// Threads: any. Lifetime: a domain outlives what it made; libibverbs refuses to free it else.
// Sources: ibv_alloc_pd(3), ibv_reg_mr(3), ibv_alloc_mw(3), mmap(2).

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "verbena/transport/memory.h"
#include "verbena/transport/rdma/handles.h"

namespace verbena::rdma {

class RdmaDevice;

// The model's entry has the layout of verbs'.
static_assert(sizeof(ScatterGatherEntry) == sizeof(ibv_sge));
inline ibv_sge* AsSge(std::span<const ScatterGatherEntry> pieces) {
  return reinterpret_cast<ibv_sge*>(const_cast<ScatterGatherEntry*>(pieces.data()));
}

// Pages of our own, unmapped at the end.
class Mapping {
 public:
  Mapping() = default;
  // Zeroed; on huge pages where the system has them and `bytes` is large. Errors:
  // RESOURCE_EXHAUSTED.
  static absl::StatusOr<Mapping> Create(size_t bytes, bool prefault);
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();
  void* address() const { return address_; }

 private:
  Mapping(void* address, size_t bytes) : address_(address), bytes_(bytes) {}
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

class RdmaMemoryRegion final : public MemoryRegion {
 public:
  RdmaMemoryRegion(RegionHandle region, std::span<std::byte> bytes, AccessFlags access,
                   Mapping mapping)
      : MemoryRegion(bytes, access), mapping_(std::move(mapping)), region_(std::move(region)) {
    local_key_ = {region_->lkey};
    remote_key_ = {region_->rkey};
  }
  ibv_mr* handle() const { return region_.get(); }

 private:
  const Mapping mapping_;  // Goes after the registration.
  const RegionHandle region_;
};

class RdmaMemoryWindow final : public MemoryWindow {
 public:
  explicit RdmaMemoryWindow(WindowHandle window)
      : MemoryWindow(RemoteKey{window->rkey}), window_(std::move(window)) {}
  ibv_mw* handle() const { return window_.get(); }
  // A binding with `key` was posted. Providers find a window by the key that they see here.
  void SetKey(RemoteKey key) {
    set_remote_key(key);
    window_->rkey = key.value;
  }

 private:
  const WindowHandle window_;
};

class RdmaProtectionDomain final : public ProtectionDomain {
 public:
  static absl::StatusOr<std::unique_ptr<RdmaProtectionDomain>> Create(RdmaDevice* device);

  absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(void* address, size_t bytes,
                                                               AccessFlags access) override;
  absl::StatusOr<std::unique_ptr<MemoryRegion>> AllocateMemory(size_t bytes, AccessFlags access,
                                                               bool prefault) override;
  absl::StatusOr<std::unique_ptr<MemoryWindow>> AllocateWindow() override;
  absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(
      const QueuePairOptions& options) override;
  absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(
      const SharedReceiveQueueOptions& options) override;

  // `pieces`, or one piece of no bytes where the device does not take none.
  std::span<const ScatterGatherEntry> NotEmpty(std::span<const ScatterGatherEntry> pieces) const;

  RdmaDevice* device() const { return device_; }
  ibv_pd* handle() const { return domain_.get(); }

 private:
  RdmaProtectionDomain(RdmaDevice* device, DomainHandle domain)
      : device_(device), domain_(std::move(domain)) {}
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(void* address, size_t bytes,
                                                         AccessFlags access, Mapping mapping);

  RdmaDevice* const device_;
  const DomainHandle domain_;
};

}  // namespace verbena::rdma
