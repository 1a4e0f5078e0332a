// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/key_table.h"

#include <utility>

#include "glog/logging.h"
#include "verbena/transport/soft/barrier.h"

namespace verbena::soft {

bool ReadKey(const KeyEntry* table, uint32_t key, KeyGrant* grant) {
  if (key == 0 || key >= kKeysMax << 8) return false;
  const KeyEntry& entry = table[key >> 8];
  if (entry.key.load(std::memory_order_acquire) != key) return false;
  grant->access = __atomic_load_n(&entry.access, __ATOMIC_RELAXED);
  grant->region = __atomic_load_n(&entry.region, __ATOMIC_RELAXED);
  grant->queue_pair = __atomic_load_n(&entry.queue_pair, __ATOMIC_RELAXED);
  grant->address = __atomic_load_n(&entry.address, __ATOMIC_RELAXED);
  grant->length = __atomic_load_n(&entry.length, __ATOMIC_RELAXED);
  grant->offset = __atomic_load_n(&entry.offset, __ATOMIC_ACQUIRE);
  // Still the same key: no field is of a later one, whose tag differs.
  return entry.key.load(std::memory_order_relaxed) == key;
}

absl::StatusOr<std::unique_ptr<KeyTable>> KeyTable::Create() {
  std::unique_ptr<KeyTable> table(new KeyTable);
  absl::StatusOr<SealedMemory> memory =
      CreateSealedMemory("verbena-keys", kBytes, /*peers_may_write=*/false);
  if (!memory.ok()) return memory.status();
  table->memory_ = *std::move(memory);
  absl::StatusOr<Mapping> local = Mapping::Anonymous(sizeof(LocalEntry) * kKeysMax);
  if (!local.ok()) return local.status();
  table->local_memory_ = *std::move(local);
  table->shared_ = reinterpret_cast<KeyEntry*>(table->memory_.mapping.data());
  table->local_ = reinterpret_cast<LocalEntry*>(table->local_memory_.data());
  return table;
}

uint32_t KeyTable::Allocate() {
  if (!free_.empty()) {
    const uint32_t key = free_.back();
    free_.pop_back();
    return key;
  }
  if (unused_ == kKeysMax) return 0;
  return unused_++ << 8;
}

void KeyTable::Free(uint32_t remote_key) {
  CloseRemote(remote_key);
  LocalEntry& local = local_[IndexOfKey(remote_key)];
  local.key.store(0, std::memory_order_relaxed);
  local.begin = local.end = 0;
  free_.push_back((remote_key & ~0xffu) | ((remote_key + 1) & 0xffu));
}

void KeyTable::OpenLocal(uint32_t remote_key, AccessFlags access, uint64_t begin, uint64_t end,
                         uint32_t region) {
  LocalEntry& local = local_[IndexOfKey(remote_key)];
  DCHECK_EQ(local.key.load(), 0u);
  local.access = access;
  local.begin = begin;
  local.end = end;
  local.region = region;
  local.key.store(remote_key | kLocalKeyBit, std::memory_order_release);
}

void KeyTable::OpenRemote(uint32_t remote_key, const KeyGrant& grant) {
  KeyEntry& entry = shared_[IndexOfKey(remote_key)];
  DCHECK_EQ(entry.key.load(), 0u);
  // A reader that has seen the old key must not take a field of ours for it: see ReadKey.
  FullFence();
  __atomic_store_n(&entry.access, grant.access, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.region, grant.region, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.queue_pair, grant.queue_pair, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.address, grant.address, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.length, grant.length, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.offset, grant.offset, __ATOMIC_RELAXED);
  entry.key.store(remote_key, std::memory_order_release);
}

void KeyTable::CloseRemote(uint32_t remote_key) {
  // seq_cst: afterwards the caller reads whether the peer is executing (send_engine.cc).
  shared_[IndexOfKey(remote_key)].key.store(0, std::memory_order_seq_cst);
}

}  // namespace verbena::soft
