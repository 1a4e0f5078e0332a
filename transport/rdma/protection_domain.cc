// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/protection_domain.h"

#include <errno.h>
#include <sys/mman.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/queue_pair.h"
#include "verbena/transport/rdma/shared_receive_queue.h"

namespace verbena::rdma {
namespace {

constexpr size_t kPageBytes = 4096;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

// ---- Memory ----

absl::StatusOr<Mapping> Mapping::Create(size_t bytes, bool prefault) {
  constexpr size_t kBytesMax = size_t{1} << 47;  // User addresses of x86-64.
  if (bytes >= kBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(bytes, " bytes are more than a process has"));
  }
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (prefault ? MAP_POPULATE : 0);
  if (bytes >= kHugePageBytes) {
    // Only where an administrator has set pages aside (vm.nr_hugepages).
    const size_t rounded = RoundUp(bytes, kHugePageBytes);
    void* const huge = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
    if (huge != MAP_FAILED) return Mapping(huge, rounded);
  }
  const size_t rounded = RoundUp(bytes, kPageBytes);
  void* const pages = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", bytes, " bytes of memory are to be had; ", Describe("mmap", errno)));
  }
  // Transparent huge pages, if the system gives them to those who ask.
  if (bytes >= kHugePageBytes) (void)madvise(pages, rounded, MADV_HUGEPAGE);
  return Mapping(pages, rounded);
}

Mapping::~Mapping() {
  if (address_ != nullptr) munmap(address_, bytes_);
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> RdmaProtectionDomain::RegisterMemory(
    void* address, size_t bytes, AccessFlags access) {
  return Register(address, bytes, access, Mapping());
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> RdmaProtectionDomain::AllocateMemory(
    size_t bytes, AccessFlags access, bool prefault) {
  if (bytes == 0) return absl::InvalidArgumentError("memory of 0 bytes");
  absl::StatusOr<Mapping> mapping = Mapping::Create(bytes, prefault);
  if (!mapping.ok()) return mapping.status();
  void* const address = mapping->address();
  return Register(address, bytes, access, *std::move(mapping));
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> RdmaProtectionDomain::Register(void* address,
                                                                             size_t bytes,
                                                                             AccessFlags access,
                                                                             Mapping mapping) {
  if (bytes == 0) return absl::InvalidArgumentError("a region of 0 bytes");
  constexpr AccessFlags kNeedsLocalWrite = kAccessRemoteWrite | kAccessRemoteAtomic;
  if ((access & kNeedsLocalWrite) != 0 && (access & kAccessLocalWrite) == 0) {
    return absl::InvalidArgumentError(
        "remote write and remote atomic access need kAccessLocalWrite, too (ibv_reg_mr(3))");
  }
  errno = 0;
  RegionHandle region(ibv_reg_mr(domain_.get(), address, bytes, access));
  if (region == nullptr) return RegistrationError(errno, bytes);
  return std::make_unique<RdmaMemoryRegion>(std::move(region),
                                            std::span(static_cast<std::byte*>(address), bytes),
                                            access, std::move(mapping));
}

absl::StatusOr<std::unique_ptr<MemoryWindow>> RdmaProtectionDomain::AllocateWindow() {
  if (!device_->capabilities().memory_windows) {
    return absl::UnimplementedError(
        absl::StrCat(device_->capabilities().device, " has no memory windows of type 2"));
  }
  errno = 0;
  WindowHandle window(ibv_alloc_mw(domain_.get(), IBV_MW_TYPE_2));
  if (window == nullptr) return CreationError("ibv_alloc_mw", errno);
  return std::make_unique<RdmaMemoryWindow>(std::move(window));
}

// ---- The rest ----

absl::StatusOr<std::unique_ptr<RdmaProtectionDomain>> RdmaProtectionDomain::Create(
    RdmaDevice* device) {
  errno = 0;
  DomainHandle domain(ibv_alloc_pd(device->context()));
  if (domain == nullptr) return CreationError("ibv_alloc_pd", errno);
  return std::unique_ptr<RdmaProtectionDomain>(new RdmaProtectionDomain(device, std::move(domain)));
}

absl::StatusOr<std::unique_ptr<QueuePair>> RdmaProtectionDomain::CreateQueuePair(
    const QueuePairOptions& options) {
  absl::StatusOr<std::unique_ptr<RdmaQueuePair>> pair = RdmaQueuePair::Create(this, options);
  if (!pair.ok()) return pair.status();
  return *std::move(pair);
}

absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> RdmaProtectionDomain::CreateSharedReceiveQueue(
    const SharedReceiveQueueOptions& options) {
  absl::StatusOr<std::unique_ptr<RdmaSharedReceiveQueue>> queue =
      RdmaSharedReceiveQueue::Create(this, options);
  if (!queue.ok()) return queue.status();
  return *std::move(queue);
}

std::span<const ScatterGatherEntry> RdmaProtectionDomain::NotEmpty(
    std::span<const ScatterGatherEntry> pieces) const {
  static constexpr ScatterGatherEntry kNothing{};
  if (!pieces.empty() || device_->takes_empty_lists()) return pieces;
  return {&kNothing, 1};
}

}  // namespace verbena::rdma
