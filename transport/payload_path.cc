// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/payload_path.h"

#include <atomic>
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

std::shared_ptr<BlockPool> PayloadPath::MakePool(AccessFlags access,
                                                 std::shared_ptr<const void> owner) const {
  return BlockPool::Create(
      std::make_unique<DomainSource>(domain_, domain_id_, access, std::move(owner)), budgets_);
}

PayloadPath::PayloadPath(PayloadPort& port, const Capabilities& can,
                         const PayloadPathOptions& options)
    : domain_(options.domain),
      domain_id_(NextDomainId()),
      budgets_{std::make_shared<MemoryBudget>("the memory budget of the connection",
                                              options.connection_bytes_max),
               options.process_budget},
      // Windows open what the peer may write to; without them the whole block is open for good.
      zones_(MakePool(
          kAccessLocalWrite | (can.memory_windows ? kAccessWindowBind : kAccessRemoteWrite),
          options.owner)),
      copies_(can.memory_windows ? zones_ : MakePool(kAccessLocalWrite, options.owner)),
      sender(port, domain_, domain_id_, can, counters),
      receiver(port, *domain_, zones_, copies_, options.process_budget, can, counters) {}

PayloadPath::~PayloadPath() {
  zones_->Close();
  copies_->Close();
}

}  // namespace verbena
