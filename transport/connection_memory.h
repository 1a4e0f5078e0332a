// SPDX-License-Identifier: Apache-2.0
//
// ConnectionMemory: the registered memory of one connection beside its rings: where messages land,
// and where they are put together or built. A pool is made when it is first asked for, so that a
// connection which needs none pays nothing.
//
// Threads: any, so that messages are built wherever the user likes. Lifetime: shared. Memory that is
// in use keeps the protection domain, and what keeps that; after Close() there is no new one.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "verbena/transport/block_pool.h"
#include "verbena/transport/device.h"
#include "verbena/transport/memory_budget.h"

namespace verbena {

struct ConnectionMemoryOptions {
  std::shared_ptr<ProtectionDomain> domain;
  std::shared_ptr<const void> owner;  // Kept as long as any memory of the connection is in use.
  std::shared_ptr<MemoryBudget> process_budget;
  uint64_t connection_bytes_max = 0;
  bool memory_windows = false;  // Capabilities::memory_windows.
};

class ConnectionMemory {
 public:
  explicit ConnectionMemory(ConnectionMemoryOptions options);
  ~ConnectionMemory();
  ConnectionMemory(const ConnectionMemory&) = delete;
  ConnectionMemory& operator=(const ConnectionMemory&) = delete;

  // Where messages land. Windows open what the peer may write to; without them the whole of each
  // block is open to it for good.
  const std::shared_ptr<BlockPool>& zones() { return Get(zones_, /*open=*/true); }
  // Where messages are put together, and what the peer can't write to is kept: the same pool, if
  // windows protect what landed.
  const std::shared_ptr<BlockPool>& staging() {
    return options_.memory_windows ? zones() : Get(staging_, /*open=*/false);
  }

  const std::shared_ptr<ProtectionDomain>& domain() const { return options_.domain; }
  // Of the domain, in BufferBlock::domain_id. Never used again for another in this process.
  uint64_t domain_id() const { return domain_id_; }
  const std::shared_ptr<MemoryBudget>& process_budget() const { return options_.process_budget; }

  uint64_t bytes() const;  // Of all pools, used or not.
  // The connection is over: the pools that were made are closed, and so will be those that are.
  void Close();

 private:
  struct Pool {
    std::atomic<bool> made{false};
    std::shared_ptr<BlockPool> pool;  // Constant once it is made.
  };
  const std::shared_ptr<BlockPool>& Get(Pool& pool, bool open) {
    if (!pool.made.load(std::memory_order_acquire)) [[unlikely]]
      Make(pool, open);
    return pool.pool;
  }
  void Make(Pool& pool, bool open);

  const ConnectionMemoryOptions options_;
  const uint64_t domain_id_;
  const std::vector<std::shared_ptr<MemoryBudget>> budgets_;  // Of the connection, of the process.
  std::mutex mutex_;
  bool closed_ = false;
  Pool zones_;
  Pool staging_;
};

}  // namespace verbena
