// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/connection_memory.h"

#include <utility>

namespace verbena {
namespace {

// Blocks up to this size get their pages when they are made. Of longer ones only what is used is
// touched, since a block may be an eighth longer than what it was made for.
constexpr size_t kPrefaultBytesMax = size_t{64} << 20;

uint64_t NextDomainId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

class DomainMemory final : public BlockMemory {
 public:
  DomainMemory(std::shared_ptr<const void> owner, std::shared_ptr<ProtectionDomain> domain,
               std::unique_ptr<MemoryRegion> region)
      : owner_(std::move(owner)), domain_(std::move(domain)), region_(std::move(region)) {}

  MemoryRegion* region() { return region_.get(); }

 private:
  // The order in which they are made; they go the other way.
  const std::shared_ptr<const void> owner_;
  const std::shared_ptr<ProtectionDomain> domain_;
  const std::unique_ptr<MemoryRegion> region_;
};

class DomainSource final : public BlockSource {
 public:
  DomainSource(std::shared_ptr<ProtectionDomain> domain, uint64_t domain_id, AccessFlags access,
               std::shared_ptr<const void> owner)
      : owner_(std::move(owner)),
        domain_(std::move(domain)),
        domain_id_(domain_id),
        access_(access) {}

  absl::StatusOr<Made> Make(size_t bytes) override {
    auto region = domain_->AllocateMemory(bytes, access_, /*prefault=*/bytes <= kPrefaultBytesMax);
    if (!region.ok()) return region.status();
    auto memory = std::make_shared<DomainMemory>(owner_, domain_, *std::move(region));
    Made made;
    made.bytes = memory->region()->bytes();
    made.domain_id = domain_id_;
    made.region = memory->region();
    made.memory = std::move(memory);
    return made;
  }

 private:
  const std::shared_ptr<const void> owner_;
  const std::shared_ptr<ProtectionDomain> domain_;
  const uint64_t domain_id_;
  const AccessFlags access_;
};

}  // namespace

ConnectionMemory::ConnectionMemory(ConnectionMemoryOptions options)
    : options_(std::move(options)),
      domain_id_(NextDomainId()),
      budgets_{std::make_shared<MemoryBudget>("the memory budget of the connection",
                                              options_.connection_bytes_max),
               options_.process_budget} {}

ConnectionMemory::~ConnectionMemory() { Close(); }

void ConnectionMemory::Make(Pool& pool, bool open) {
  std::lock_guard lock(mutex_);
  if (pool.made.load(std::memory_order_relaxed)) return;
  AccessFlags access = kAccessLocalWrite;
  if (open) access |= options_.memory_windows ? kAccessWindowBind : kAccessRemoteWrite;
  pool.pool = BlockPool::Create(
      std::make_unique<DomainSource>(options_.domain, domain_id_, access, options_.owner),
      budgets_);
  if (closed_) pool.pool->Close();
  pool.made.store(true, std::memory_order_release);
}

uint64_t ConnectionMemory::bytes() const {
  uint64_t bytes = 0;
  for (const Pool* pool : {&zones_, &staging_}) {
    if (pool->made.load(std::memory_order_acquire)) bytes += pool->pool->bytes();
  }
  return bytes;
}

void ConnectionMemory::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (Pool* pool : {&zones_, &staging_}) {
    if (pool->made.load(std::memory_order_relaxed)) pool->pool->Close();
  }
}

}  // namespace verbena
