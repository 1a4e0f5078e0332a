// SPDX-License-Identifier: Apache-2.0
//
// Protection domains and what is registered in them: memory regions and memory windows.
//
// A protection domain is the unit of trust. On every device a queue pair reaches, and lets its
// peer reach, only memory of its own domain; on the software device the peer's process can map
// nothing else. One domain per connection therefore isolates the peers of one server from each
// other.
//
// Threads: registration may be called from any thread, is slow (system calls, page pinning) and
// does not belong on a data path. A region must outlive every work request that names it; a
// domain must outlive its regions, windows, shared receive queues and queue pairs.
//
// Sources: ibv_alloc_pd(3), ibv_reg_mr(3), ibv_alloc_mw(3), ibv_bind_mw(3); InfiniBand
// specification vol. 1, section 10.6 (memory management).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "verbena/transport/work_request.h"

namespace verbena {

class QueuePair;
class SharedReceiveQueue;
struct QueuePairOptions;
struct SharedReceiveQueueOptions;

// A registered range of this process's memory. Destroying it deregisters: later use of its keys
// fails with kLocalProtectionError here and kRemoteAccessError at the peer.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;

  std::span<std::byte> bytes() const { return bytes_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_.data()); }
  size_t size() const { return bytes_.size(); }
  LocalKey local_key() const { return local_key_; }
  // Opens the region to the peer with the rights given at registration, as long as it lives.
  RemoteKey remote_key() const { return remote_key_; }
  AccessFlags access() const { return access_; }

 protected:
  MemoryRegion(std::span<std::byte> bytes, AccessFlags access) : bytes_(bytes), access_(access) {}

  std::span<std::byte> bytes_;
  LocalKey local_key_;
  RemoteKey remote_key_;
  AccessFlags access_;
};

// A type 2 memory window: a key that is given to a part of a region for one queue pair by a
// BIND_WINDOW work request, and taken back by LOCAL_INVALIDATE or the peer's SEND_WITH_INVALIDATE.
class MemoryWindow {
 public:
  virtual ~MemoryWindow() = default;

  // The key of the present (or last) binding.
  RemoteKey remote_key() const { return remote_key_; }
  // The key to bind next: the same index, the 8-bit tag increased by one (ibv_inc_rkey(3)).
  RemoteKey NextKey() const {
    return RemoteKey{(remote_key_.value & ~0xffu) | ((remote_key_.value + 1) & 0xffu)};
  }
  // For devices: called when a BIND_WINDOW with `key` was accepted.
  void set_remote_key(RemoteKey key) { remote_key_ = key; }

 protected:
  explicit MemoryWindow(RemoteKey key) : remote_key_(key) {}
  RemoteKey remote_key_;
};

class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;

  // Registers [address, address + bytes), which stays the caller's and must outlive the region.
  // Errors: INVALID_ARGUMENT (empty range, remote write without local write), UNIMPLEMENTED
  // (remote rights on a device without Capabilities::remote_access_to_user_memory: use
  // AllocateMemory), RESOURCE_EXHAUSTED naming the limit and the need.
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(void* address, size_t bytes,
                                                                       AccessFlags access) = 0;

  // Allocates zeroed, page-aligned memory of the kind this device likes best and registers it.
  // Destroying the region frees the memory. Pages are touched only when `prefault`.
  // Errors: as above.
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> AllocateMemory(size_t bytes,
                                                                       AccessFlags access,
                                                                       bool prefault = false) = 0;

  // Errors: UNIMPLEMENTED without Capabilities::memory_windows, RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<std::unique_ptr<MemoryWindow>> AllocateWindow() = 0;

  // Errors: INVALID_ARGUMENT or RESOURCE_EXHAUSTED naming the option and its limit; among them a
  // completion queue that the new queue pair could overflow.
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(
      const QueuePairOptions& options) = 0;

  // Errors: UNIMPLEMENTED without Capabilities::shared_receive_queue, INVALID_ARGUMENT.
  virtual absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(
      const SharedReceiveQueueOptions& options) = 0;
};

}  // namespace verbena
