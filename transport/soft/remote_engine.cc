// SPDX-License-Identifier: Apache-2.0
//
// Requests that reach into the peer's memory by a key, and the keys that let the peer reach ours.
//
// The requester looks up the key, checks it and copies. That the key may be taken back in between
// is settled by ExecutingMark: with a full fence here, so that taking a key back needs no system
// call.

#include <atomic>
#include <cstring>

#include "glog/logging.h"
#include "verbena/transport/soft/executing_mark.h"
#include "verbena/transport/soft/protection_domain.h"
#include "verbena/transport/soft/queue_pair.h"

namespace verbena::soft {
namespace {

constexpr AccessFlags kAccessRemoteAny =
    kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;

}  // namespace

SoftQueuePair::Outcome SoftQueuePair::ExecuteWrite(const SendWorkRequest& request, bool with_imm) {
  uint64_t bytes = 0;
  if (!SumAndCheckLocal(request, kAccessLocalRead, &bytes)) {
    return FailSend(request, CompletionStatus::kLocalProtectionError);
  }
  if (bytes > kMessageBytesMax) return FailSend(request, CompletionStatus::kLocalLengthError);
  {
    ExecutingMark mark(tx_.control, &executing_count_, /*fence=*/true);
    if (PeerClosed()) return FailSend(request, CompletionStatus::kRetryExceeded);
    if (with_imm && sent_ == tail_seen_ && !ReceiveAvailable()) return NoReceive(request);
    std::byte* to = nullptr;
    const RemoteUse use = Resolve(request.remote, bytes, kAccessRemoteWrite, &to);
    if (use == RemoteUse::kMissing) return Outcome::kRegionMissing;
    if (use != RemoteUse::kOk) return FailRemoteUse(request, use);
    for (const ScatterGatherEntry& sge : request.sg_list) {
      std::memmove(to, reinterpret_cast<const void*>(sge.address), sge.length);
      to += sge.length;
    }
    if (with_imm) {
      Publish(request, WireOpcode::kWriteWithImm, static_cast<uint32_t>(bytes), /*flags=*/0,
              WireStatus::kSuccess);
    }
  }
  if (with_imm) return FinishPublication(request, static_cast<uint32_t>(bytes));
  ++counters_.messages_sent;
  Succeed(request, static_cast<uint32_t>(bytes));
  return Outcome::kDone;
}

SoftQueuePair::Outcome SoftQueuePair::ExecuteRead(const SendWorkRequest& request) {
  uint64_t bytes = 0;
  if (!SumAndCheckLocal(request, kAccessLocalWrite, &bytes)) {
    return FailSend(request, CompletionStatus::kLocalProtectionError);
  }
  if (bytes > kMessageBytesMax) return FailSend(request, CompletionStatus::kLocalLengthError);
  {
    ExecutingMark mark(tx_.control, &executing_count_, /*fence=*/true);
    if (PeerClosed()) return FailSend(request, CompletionStatus::kRetryExceeded);
    std::byte* from = nullptr;
    const RemoteUse use = Resolve(request.remote, bytes, kAccessRemoteRead, &from);
    if (use == RemoteUse::kMissing) return Outcome::kRegionMissing;
    if (use != RemoteUse::kOk) return FailRemoteUse(request, use);
    for (const ScatterGatherEntry& sge : request.sg_list) {
      std::memmove(reinterpret_cast<void*>(sge.address), from, sge.length);
      from += sge.length;
    }
  }
  ++counters_.messages_sent;
  Succeed(request, static_cast<uint32_t>(bytes));
  return Outcome::kDone;
}

SoftQueuePair::Outcome SoftQueuePair::ExecuteAtomic(const SendWorkRequest& request) {
  uint64_t bytes = 0;
  if (!SumAndCheckLocal(request, kAccessLocalWrite, &bytes)) {
    return FailSend(request, CompletionStatus::kLocalProtectionError);
  }
  const AtomicTarget& target = request.atomic;
  if (target.address % sizeof(uint64_t) != 0) {
    return FailAtPeer(request, CompletionStatus::kRemoteInvalidRequestError, Fault::kRequest);
  }
  uint64_t old = 0;
  {
    ExecutingMark mark(tx_.control, &executing_count_, /*fence=*/true);
    if (PeerClosed()) return FailSend(request, CompletionStatus::kRetryExceeded);
    std::byte* memory = nullptr;
    RemoteUse use =
        Resolve({target.address, target.key}, sizeof(uint64_t), kAccessRemoteAtomic, &memory);
    if (use == RemoteUse::kMissing) return Outcome::kRegionMissing;
    // Regions begin at a page, so an aligned address is aligned in our mapping, unless the key
    // table lies; an atomic across two cache lines could end in SIGBUS.
    if (use == RemoteUse::kOk && reinterpret_cast<uintptr_t>(memory) % sizeof(uint64_t) != 0) {
      use = RemoteUse::kPeerLies;
    }
    if (use != RemoteUse::kOk) return FailRemoteUse(request, use);
    std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(memory));
    if (request.opcode == Opcode::kFetchAndAdd) {
      old = word.fetch_add(target.compare_add);
    } else {
      old = target.compare_add;
      word.compare_exchange_strong(old, target.swap);
    }
  }
  std::memcpy(reinterpret_cast<void*>(request.sg_list[0].address), &old, sizeof old);
  ++counters_.messages_sent;
  Succeed(request, sizeof old);
  return Outcome::kDone;
}

SoftQueuePair::Outcome SoftQueuePair::FailRemoteUse(const SendWorkRequest& request, RemoteUse use) {
  if (use == RemoteUse::kPeerLies)
    return FailSend(request, CompletionStatus::kRemoteOperationError);
  return FailAtPeer(request, CompletionStatus::kRemoteAccessError, Fault::kAccess);
}

SoftQueuePair::RemoteUse SoftQueuePair::Resolve(const RemoteTarget& target, uint64_t bytes,
                                                AccessFlags need, std::byte** memory) {
  // The key of an empty transfer is not looked at (IB specification vol. 1, section 9.4.3).
  if (bytes == 0) return RemoteUse::kOk;
  KeyGrant grant;
  if (!ReadKey(peer_keys_, target.key.value, &grant) || InvalidatedByUs(target.key.value) ||
      (grant.access & need) != need ||
      (grant.queue_pair != 0 && grant.queue_pair != peer_queue_pair_) ||
      target.address < grant.address || target.address - grant.address > grant.length ||
      bytes > grant.length - (target.address - grant.address)) {
    return RemoteUse::kRefused;
  }
  bool missing = false;
  *memory = MapPeerMemory(grant.region, grant.offset + (target.address - grant.address), bytes,
                          need != kAccessRemoteRead, &missing);
  if (missing) return RemoteUse::kMissing;
  return *memory == nullptr ? RemoteUse::kPeerLies : RemoteUse::kOk;
}

std::byte* SoftQueuePair::MapPeerMemory(uint32_t region, uint64_t offset, uint64_t bytes,
                                        bool write, bool* missing) {
  const uint32_t index = IndexOfKey(region);
  if (index >= remote_regions_.size() || remote_regions_[index].key != region) [[unlikely]] {
    TakeInbox();  // It may have arrived just now.
  }
  if (region == 0 || index >= remote_regions_.size() || remote_regions_[index].key != region) {
    *missing = true;
    return nullptr;
  }
  const RemoteRegion& mapped = remote_regions_[index];
  const uint64_t size = mapped.mapping.size();
  if (offset > size || bytes > size - offset || (write && !mapped.writable)) return nullptr;
  return mapped.mapping.data() + offset;
}

bool SoftQueuePair::InvalidatedByUs(uint32_t key) const {
  for (const uint32_t taken_back : invalidated_) {
    if (taken_back == key) return true;
  }
  return false;
}

void SoftQueuePair::RememberInvalidated(uint32_t key) {
  // The peer has polled our message once its table shows the key no more. What is left is at most
  // one key per message under way, for which there is room (Establish).
  KeyGrant grant;
  std::erase_if(invalidated_,
                [&](uint32_t taken_back) { return !ReadKey(peer_keys_, taken_back, &grant); });
  invalidated_.push_back(key);
}

// Keys of our own --------------------------------------------------------------------------------

SoftQueuePair::Outcome SoftQueuePair::ExecuteBind(const SendWorkRequest& request) {
  const WindowBinding& bind = request.bind;
  const auto* window = static_cast<const SoftMemoryWindow*>(bind.window);
  const auto* region = static_cast<const SoftMemoryRegion*>(bind.region);
  const AccessFlags needs_local_write = kAccessRemoteWrite | kAccessRemoteAtomic;
  // IB specification vol. 1, section 10.6.7.2: a type 2 window is bound while it is invalid.
  if (window == nullptr || region == nullptr || window->domain() != domain_ ||
      region->domain() != domain_ || !region->shared() ||
      (region->access() & kAccessWindowBind) == 0 || (bind.access & ~kAccessRemoteAny) != 0 ||
      ((bind.access & needs_local_write) != 0 && (region->access() & kAccessLocalWrite) == 0) ||
      bind.length == 0 || bind.key.value >> 8 != window->index() ||
      domain_->keys().RemoteIsOpen(window->index()) || bind.address < region->address() ||
      bind.address - region->address() > region->size() ||
      bind.length > region->size() - (bind.address - region->address())) {
    return FailSend(request, CompletionStatus::kWindowBindError);
  }
  domain_->keys().OpenRemote(bind.key.value, {.access = bind.access,
                                              .region = region->remote_key().value,
                                              .queue_pair = number_,
                                              .address = bind.address,
                                              .length = bind.length,
                                              .offset = bind.address - region->address()});
  Succeed(request, 0);
  return Outcome::kDone;
}

bool SoftQueuePair::InvalidateForPeer(uint32_t key) {
  KeyGrant grant;
  if (!domain_->keys().ReadRemote(key, &grant) || grant.queue_pair != number_) return false;
  domain_->keys().CloseRemote(key);
  return true;
}

SoftQueuePair::Outcome SoftQueuePair::ExecuteInvalidate(const SendWorkRequest& request) {
  if (!invalidate_waits_) {
    if (!InvalidateForPeer(request.invalidate_key.value)) {
      return FailSend(request, CompletionStatus::kLocalQueuePairOperationError);
    }
    // Order: close the key, then read the mark, both seq_cst; see ExecutingMark.
    invalidate_seen_ = own_.control->executing.load(std::memory_order_seq_cst);
    invalidate_waits_ = invalidate_seen_ % 2 != 0;
  } else if (peer_gone_.load(std::memory_order_acquire) ||
             own_.control->executing.load(std::memory_order_acquire) != invalidate_seen_) {
    invalidate_waits_ = false;
  }
  if (invalidate_waits_) return Outcome::kPeerExecuting;
  Succeed(request, 0);
  return Outcome::kDone;
}

}  // namespace verbena::soft
