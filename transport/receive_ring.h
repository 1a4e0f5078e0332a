// SPDX-License-Identifier: Apache-2.0
//
// ReceiveRing: the memory of an endpoint's receive slots, and Buffers that lend a slot to whoever
// reads its message in place. A slot that is lent is posted again when the last such Buffer is gone.
//
//   Lend -> Buffer -> gone on the poller's thread     Host::TakeBack, at once
//                  -> gone anywhere else              a list, for the next CollectReturned
//
// At most a quarter of the ring is lent: then the rest is still more than the half after which
// credits are granted (credit_account.h), and no reader can stop the connection.
//
// Threads: the poller's, but for the Buffers. Lifetime: Abandon() by the endpoint; the memory, its
// registration and what these need stay until the last Buffer is gone, too.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "verbena/transport/buffer.h"
#include "verbena/transport/endpoint_host.h"
#include "verbena/transport/memory.h"

namespace verbena {

class ReceiveRing final : private BlockHome {
 public:
  // Whose ring it is.
  class Owner {
   public:
    // The Buffer of this slot is gone.
    virtual void TakeBackSlot(uint32_t slot) = 0;

   protected:
    ~Owner() = default;
  };
  struct Abandoner {
    void operator()(ReceiveRing* ring) const { ring->Abandon(); }
  };
  using Pointer = std::unique_ptr<ReceiveRing, Abandoner>;

  struct Options {
    uint32_t depth = 0;
    size_t stride = 0;  // Bytes from slot to slot.
    // Kept as long as the ring and its Buffers: what the memory belongs to.
    std::shared_ptr<const void> device_owner;
    std::shared_ptr<ProtectionDomain> domain;
    uint64_t domain_id = 0;  // BufferBlock::domain_id.
  };
  // `memory`: depth x stride bytes. `host`: of the poller.
  static Pointer Create(Options options, std::unique_ptr<MemoryRegion> memory,
                        const EndpointHost& host, Owner& owner) {
    return Pointer(new ReceiveRing(std::move(options), std::move(memory), host, owner));
  }

  std::byte* Slot(uint32_t slot) const { return memory_->bytes().data() + slot * options_.stride; }
  LocalKey local_key() const { return memory_->local_key(); }

  // How many slots may be lent at once.
  uint32_t lent_max() const { return options_.depth / 4; }
  // All of the first `bytes` of a slot. Empty when lent_max() are lent. Allocates only when more are
  // lent than ever before.
  Buffer Lend(uint32_t slot, size_t bytes);

  // Whether Buffers went on other threads.
  bool HasReturned() const { return returned_.load(std::memory_order_relaxed) != nullptr; }
  void CollectReturned();

 private:
  struct Loan : BufferBlock {
    uint32_t slot = 0;
    Loan* next = nullptr;  // In returned_.
  };

  ReceiveRing(Options options, std::unique_ptr<MemoryRegion> memory, const EndpointHost& host,
              Owner& owner)
      : options_(std::move(options)), memory_(std::move(memory)), host_(&host), owner_(&owner) {}
  ~ReceiveRing() = default;

  void GiveBack(BufferBlock* block) override;
  void End(Loan* loan);
  // The endpoint is gone.
  void Abandon();

  // In this order: the memory goes first.
  const Options options_;
  const std::unique_ptr<MemoryRegion> memory_;
  const EndpointHost* const host_;  // Compared, and never used.

  // Poller only.
  Owner* owner_;  // Null after Abandon().
  std::vector<std::unique_ptr<Loan>> all_;
  std::vector<Loan*> free_;
  uint32_t lent_ = 0;

  // Loans that ended on other threads.
  std::atomic<Loan*> returned_{nullptr};
  // Less one for each of them, plus one for each of all that are lent at Abandon(): who makes it 0
  // then is the last.
  std::atomic<int64_t> balance_{0};
};

}  // namespace verbena
