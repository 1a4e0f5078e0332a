// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/receive_ring.h"

#include <utility>

namespace verbena {

Buffer ReceiveRing::Lend(uint32_t slot, size_t bytes) {
  if (lent_ == lent_max() && HasReturned()) CollectReturned();
  if (lent_ == lent_max()) return Buffer();
  if (free_.empty()) {
    Loan* const loan = all_.emplace_back(std::make_unique<Loan>()).get();
    loan->home = this;
    loan->id = BufferBlock::NextId();
    loan->domain_id = options_.domain_id;
    loan->region = memory_.get();
    free_.reserve(all_.size());
    free_.push_back(loan);
  }
  Loan* const loan = free_.back();
  free_.pop_back();
  ++lent_;
  loan->slot = slot;
  loan->bytes = {Slot(slot), bytes};
  return Buffer::First(loan, bytes);
}

void ReceiveRing::GiveBack(BufferBlock* block) {
  auto* const loan = static_cast<Loan*>(block);
  if (current_endpoint_host == host_ && owner_ != nullptr) {
    End(loan);
    return;
  }
  Loan* first = returned_.load(std::memory_order_relaxed);
  do {
    loan->next = first;
  } while (!returned_.compare_exchange_weak(first, loan, std::memory_order_release,
                                            std::memory_order_relaxed));
  // From here on the endpoint may be gone, and another thread the last.
  if (balance_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void ReceiveRing::End(Loan* loan) {
  --lent_;
  free_.push_back(loan);
  if (owner_ != nullptr) owner_->TakeBackSlot(loan->slot);
}

void ReceiveRing::CollectReturned() {
  Loan* loan = returned_.exchange(nullptr, std::memory_order_acquire);
  int64_t count = 0;
  while (loan != nullptr) {
    Loan* const next = loan->next;
    End(loan);
    ++count;
    loan = next;
  }
  balance_.fetch_add(count, std::memory_order_relaxed);
}

void ReceiveRing::Abandon() {
  owner_ = nullptr;
  CollectReturned();
  const auto lent = static_cast<int64_t>(lent_);
  if (balance_.fetch_add(lent, std::memory_order_acq_rel) + lent == 0) delete this;
}

}  // namespace verbena
