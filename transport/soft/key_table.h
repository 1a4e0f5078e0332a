// SPDX-License-Identifier: Apache-2.0
//
// Keys of a protection domain. A key is an index and a tag that changes with every use of the
// index, so that a stale key is told from the present one:
//
//   local key  = 1 << 31 | index << 8 | tag      found only in our own table
//   remote key =           index << 8 | tag      found only in the shared table
//
// The two tables have the same indices. The local one is private. The shared one is a memfd that
// every peer of the domain maps read-only: the peer executes its WRITEs itself, so it also looks up
// its right to. What it finds, it checks against its own mappings.
//
// Threads: the owner changes entries under the device's mutex (regions) or on the thread of the
// queue pair (windows); anyone reads at any time.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/shared_memory.h"
#include "verbena/transport/work_request.h"

namespace verbena::soft {

inline constexpr uint32_t kLocalKeyBit = 1u << 31;
static_assert((kKeysMax & (kKeysMax - 1)) == 0 && kKeysMax <= 1u << 23);

inline uint32_t IndexOfKey(uint32_t key) { return (key >> 8) & (kKeysMax - 1); }

// Owner writes, peers read. In shared memory.
struct alignas(64) KeyEntry {
  std::atomic<uint32_t> key;  // 0: nothing here. Written last when opening, first when closing.
  AccessFlags access;         // kAccessRemote* bits.
  uint32_t region;            // Remote key of the region under which its memory was announced.
  uint32_t queue_pair;        // Of the owner. Only its peer may use the key. 0: any peer.
  uint64_t address;           // In the owner's process.
  uint64_t length;
  uint64_t offset;  // Of `address` in the region.
};
static_assert(sizeof(KeyEntry) == 64);

// What a peer learned of a key by one consistent read.
struct KeyGrant {
  AccessFlags access;
  uint32_t region;
  uint32_t queue_pair;
  uint64_t address;
  uint64_t length;
  uint64_t offset;
};

// Reads the entry of `key` in a shared table. False if the key is not valid (any more).
bool ReadKey(const KeyEntry* table, uint32_t key, KeyGrant* grant);

// Private to the domain.
struct LocalEntry {
  std::atomic<uint32_t> key;  // 0: nothing here.
  AccessFlags access;
  uint64_t begin;
  uint64_t end;
  uint32_t region;  // Remote key, or 0 for memory that no peer can map.
};

class KeyTable {
 public:
  static absl::StatusOr<std::unique_ptr<KeyTable>> Create();

  // Takes a free index with a fresh tag: a remote key that opens nothing yet. 0: all are in use.
  uint32_t Allocate();
  // The index may be taken again. Both entries are closed.
  void Free(uint32_t remote_key);

  void OpenLocal(uint32_t remote_key, AccessFlags access, uint64_t begin, uint64_t end,
                 uint32_t region);
  void OpenRemote(uint32_t remote_key, const KeyGrant& grant);
  void CloseRemote(uint32_t remote_key);

  // Our own entry of a remote key.
  bool ReadRemote(uint32_t remote_key, KeyGrant* grant) const {
    return ReadKey(shared_, remote_key, grant);
  }

  bool RemoteIsOpen(uint32_t index) const {
    return shared_[index].key.load(std::memory_order_relaxed) != 0;
  }

  // Hot: whether `key` covers [address, address + length) and grants `access`; the entry, or null.
  const LocalEntry* Find(LocalKey key, uint64_t address, uint32_t length,
                         AccessFlags access) const {
    const LocalEntry& entry = local_[IndexOfKey(key.value)];
    // A closed entry covers no byte, which also refuses key 0.
    if (entry.key.load(std::memory_order_acquire) != key.value || address < entry.begin ||
        address > entry.end || length > entry.end - address || (entry.access & access) != access)
        [[unlikely]] {
      return nullptr;
    }
    return &entry;
  }

  int fd() const { return memory_.fd.get(); }
  static constexpr size_t kBytes = sizeof(KeyEntry) * kKeysMax;

 private:
  KeyTable() = default;

  SealedMemory memory_;
  Mapping local_memory_;
  KeyEntry* shared_ = nullptr;
  LocalEntry* local_ = nullptr;
  std::vector<uint32_t> free_;  // Remote keys with the tag to use next; a stack.
  uint32_t unused_ = 1;         // The next index that was never used. 0 is never given out.
};

}  // namespace verbena::soft
