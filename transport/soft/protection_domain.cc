// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/protection_domain.h"

#include <string.h>
#include <sys/mman.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/control_thread.h"
#include "verbena/transport/soft/device_impl.h"
#include "verbena/transport/soft/queue_pair.h"
#include "verbena/transport/soft/shared_receive_queue.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14.
#endif

namespace verbena::soft {
namespace {

constexpr AccessFlags kAccessRemote = kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;

absl::Status CheckAccess(AccessFlags access) {
  if ((access & (kAccessRemoteWrite | kAccessRemoteAtomic)) != 0 &&
      (access & kAccessLocalWrite) == 0) {
    return absl::InvalidArgumentError(
        "remote write and remote atomic access need kAccessLocalWrite, too");
  }
  return absl::OkStatus();
}

// Makes the pages exist now. Failing is no error: they come on first use.
void Prefault(const Mapping& mapping) {
  if (madvise(mapping.data(), mapping.size(), MADV_POPULATE_WRITE) == 0) return;
  for (size_t at = 0; at < mapping.size(); at += kPageBytes) {
    const_cast<volatile std::byte*>(mapping.data())[at] = std::byte{0};
  }
}

}  // namespace

SoftMemoryRegion::SoftMemoryRegion(SoftProtectionDomain* domain, std::span<std::byte> bytes,
                                   AccessFlags access, uint32_t remote_key, SealedMemory memory)
    : MemoryRegion(bytes, access), domain_(domain), memory_(std::move(memory)) {
  local_key_ = LocalKey{remote_key | kLocalKeyBit};
  remote_key_ = RemoteKey{remote_key};
}

SoftMemoryRegion::~SoftMemoryRegion() { domain_->Retire(*this); }

SoftMemoryWindow::~SoftMemoryWindow() { domain_->Retire(*this); }

absl::StatusOr<std::unique_ptr<SoftProtectionDomain>> SoftProtectionDomain::Create(
    SoftDevice* device) {
  absl::StatusOr<std::unique_ptr<KeyTable>> keys = KeyTable::Create();
  if (!keys.ok()) return keys.status();
  std::unique_ptr<SoftProtectionDomain> domain(new SoftProtectionDomain(device));
  domain->keys_ = *std::move(keys);
  return domain;
}

SoftProtectionDomain::~SoftProtectionDomain() {
  CHECK_EQ(children_.load(), 0) << "regions, windows or queues outlive their protection domain";
}

absl::StatusOr<uint32_t> SoftProtectionDomain::AllocateKey() {
  std::lock_guard lock(device_->control().mutex());
  const uint32_t key = keys_->Allocate();
  if (key == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a protection domain has at most ", kKeysMax - 1, " regions and windows"));
  }
  children_.fetch_add(1);
  return key;
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> SoftProtectionDomain::RegisterMemory(
    void* address, size_t bytes, AccessFlags access) {
  const uint64_t begin = reinterpret_cast<uint64_t>(address);
  if (address == nullptr || bytes == 0 || begin + bytes < begin) {
    return absl::InvalidArgumentError("an empty or impossible range of memory");
  }
  absl::Status status = CheckAccess(access);
  if (!status.ok()) return status;
  if ((access & (kAccessRemote | kAccessWindowBind)) != 0) {
    return absl::UnimplementedError(
        "the software device cannot open the user's own memory to a peer; get it from "
        "AllocateMemory (Capabilities::remote_access_to_user_memory)");
  }
  absl::StatusOr<uint32_t> key = AllocateKey();
  if (!key.ok()) return key.status();
  keys_->OpenLocal(*key, access, begin, begin + bytes, /*region=*/0);
  return std::make_unique<SoftMemoryRegion>(
      this, std::span(static_cast<std::byte*>(address), bytes), access, *key, SealedMemory{});
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> SoftProtectionDomain::AllocateMemory(
    size_t bytes, AccessFlags access, bool prefault) {
  if (bytes == 0) return absl::InvalidArgumentError("a region of no bytes");
  if (bytes > kPeerMappedBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a region of ", bytes, " bytes; a peer maps at most ", kPeerMappedBytesMax, " in all"));
  }
  absl::Status status = CheckAccess(access);
  if (!status.ok()) return status;
  const size_t rounded = (bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  // What we may not receive into, the peer cannot even map for writing.
  const bool writable = (access & kAccessLocalWrite) != 0;
  absl::StatusOr<SealedMemory> memory = CreateSealedMemory("verbena-region", rounded, writable);
  if (!memory.ok()) return memory.status();
  if (prefault) Prefault(memory->mapping);
  absl::StatusOr<uint32_t> key = AllocateKey();
  if (!key.ok()) return key.status();

  std::byte* data = memory->mapping.data();
  const uint64_t begin = reinterpret_cast<uint64_t>(data);
  const int fd = memory->fd.get();
  auto region = std::make_unique<SoftMemoryRegion>(this, std::span(data, bytes), access, *key,
                                                   *std::move(memory));
  keys_->OpenLocal(*key, access, begin, begin + bytes, *key);
  if ((access & kAccessRemote) != 0) {
    keys_->OpenRemote(*key, {.access = access & kAccessRemote,
                             .region = *key,
                             .queue_pair = 0,
                             .address = begin,
                             .length = bytes,
                             .offset = 0});
  }
  if ((access & (kAccessLocalWrite | kAccessRemote | kAccessWindowBind)) != 0) {
    ControlMessage announcement;
    announcement.type = MessageType::kRegion;
    announcement.flags = (writable ? kMessageWritable : 0) | (prefault ? kMessagePrefaulted : 0);
    announcement.region = *key;
    announcement.region_bytes = rounded;
    device_->control().AnnounceRegion(this, announcement, fd);
  }
  return region;
}

absl::StatusOr<std::unique_ptr<MemoryWindow>> SoftProtectionDomain::AllocateWindow() {
  absl::StatusOr<uint32_t> key = AllocateKey();
  if (!key.ok()) return key.status();
  return std::make_unique<SoftMemoryWindow>(this, *key);
}

void SoftProtectionDomain::Retire(SoftMemoryRegion& region) {
  std::lock_guard lock(device_->control().mutex());
  if (region.shared()) {
    device_->control().WithdrawRegionLocked(this, region.remote_key().value);
  }
  keys_->Free(region.remote_key().value);
  children_.fetch_sub(1);
}

void SoftProtectionDomain::Retire(SoftMemoryWindow& window) {
  std::lock_guard lock(device_->control().mutex());
  keys_->Free(window.remote_key().value);
  children_.fetch_sub(1);
}

absl::StatusOr<std::unique_ptr<QueuePair>> SoftProtectionDomain::CreateQueuePair(
    const QueuePairOptions& options) {
  absl::StatusOr<std::unique_ptr<SoftQueuePair>> queue_pair = SoftQueuePair::Create(this, options);
  if (!queue_pair.ok()) return queue_pair.status();
  return *std::move(queue_pair);
}

absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> SoftProtectionDomain::CreateSharedReceiveQueue(
    const SharedReceiveQueueOptions& options) {
  if (options.depth == 0 || options.depth > kQueueDepthMax) {
    return absl::InvalidArgumentError(absl::StrCat("depth is 1 to queue_depth_max, ",
                                                   kQueueDepthMax, ", and not ", options.depth));
  }
  if (options.sge_max > kReceiveSgeMax) {
    return absl::InvalidArgumentError(absl::StrCat("sge_max is at most recv_sge_max, ",
                                                   kReceiveSgeMax, ", and not ", options.sge_max));
  }
  children_.fetch_add(1);
  return std::make_unique<SoftSharedReceiveQueue>(this, options);
}

}  // namespace verbena::soft
