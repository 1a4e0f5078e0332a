// SPDX-License-Identifier: Apache-2.0
//
// PayloadPath: what a connection has when messages go by RDMA WRITE: pools, sender, receiver. Made
// when the first such message comes or goes, so that a connection without any pays nothing.
//
// Threads: the poller's. Lifetime: the endpoint's; destroyed after the queue pair is.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "verbena/transport/block_pool.h"
#include "verbena/transport/device.h"
#include "verbena/transport/payload_port.h"
#include "verbena/transport/payload_receiver.h"
#include "verbena/transport/payload_sender.h"

namespace verbena {

struct PayloadPathOptions {
  std::shared_ptr<ProtectionDomain> domain;
  std::shared_ptr<const void> owner;  // Kept as long as any memory of the connection is in use.
  std::shared_ptr<MemoryBudget> process_budget;
  uint64_t connection_bytes_max;
};

class PayloadPath {
 public:
  PayloadPath(PayloadPort& port, const Capabilities& can, const PayloadPathOptions& options);
  ~PayloadPath();

  // Where messages are put together, and what the peer can't write to is kept.
  BlockPool& staging() { return *copies_; }
  const std::shared_ptr<BlockPool>& zones() { return zones_; }
  const std::shared_ptr<ProtectionDomain>& domain() { return domain_; }
  uint64_t bytes() const { return zones_->bytes() + (copies_ == zones_ ? 0 : copies_->bytes()); }

 private:
  std::shared_ptr<BlockPool> MakePool(AccessFlags access, std::shared_ptr<const void> owner) const;

  const std::shared_ptr<ProtectionDomain> domain_;
  const uint64_t domain_id_;
  const std::vector<std::shared_ptr<MemoryBudget>> budgets_;  // Of the connection, of the process.
  std::shared_ptr<BlockPool> zones_;
  std::shared_ptr<BlockPool> copies_;  // The same, where memory windows protect what landed.

 public:
  PayloadCounters counters;
  PayloadSender sender;
  PayloadReceiver receiver;
};

}  // namespace verbena
