// SPDX-License-Identifier: Apache-2.0
//
// ServerRuntime: what is behind a Server: devices, listeners, pollers, and the order in which they
// end.
//
// Threads: any for the public functions; connection requests come on a device's first poller.

#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/base/random.h"
#include "verbena/rpc/method_table.h"
#include "verbena/rpc/server.h"
#include "verbena/rpc/server_poller.h"

namespace verbena {

class ServerRuntime {
 public:
  static absl::StatusOr<std::unique_ptr<ServerRuntime>> Start(ServerOptions options);
  ~ServerRuntime();

  void Shutdown(std::chrono::milliseconds grace);
  void Wait();
  const std::vector<Address>& addresses() const { return addresses_; }
  ServerStatistics statistics() const;

 private:
  // A device that serves at least one of the addresses, with pollers of its own.
  struct Group {
    explicit Group(uint64_t seed) : random(seed) {}
    std::shared_ptr<Device> device;
    std::vector<std::unique_ptr<ServerPoller>> pollers;
    // The rest belongs to the first poller's thread.
    std::vector<std::unique_ptr<Listener>> listeners;
    size_t next_poller = 0;
    Random random;
  };

  explicit ServerRuntime(ServerOptions options) : options_(std::move(options)) {}
  absl::Status Initialize();
  absl::Status Validate() const;
  absl::StatusOr<Group*> GroupFor(const Address& address);
  absl::Status Listen(Group& group, const Address& address);
  void OnConnectRequest(Group& group, std::unique_ptr<ConnectionRequest> request);
  void Refuse(Group& group, std::unique_ptr<ConnectionRequest> request, Refusal::Reason reason,
              uint32_t limit);
  void StopListening();
  template <class F>
  void ForEachPoller(F&& f) const;
  // Until the counter's sum over the pollers is 0. False when the bound came first.
  bool WaitForZero(SingleWriterCounter ServerPollerCounters::*counter, int64_t bound_ns) const;
  // REQUIRES: mutex_ is held.
  ServerStatistics StatisticsLocked() const;

  const ServerOptions options_;
  MethodTable methods_;
  std::vector<Address> addresses_;
  // Constant after Start, but for the end, which swaps it away under mutex_.
  std::vector<std::unique_ptr<Group>> groups_;
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint64_t> refused_{0};

  mutable std::mutex mutex_;
  std::condition_variable finished_changed_;
  // Guarded by mutex_.
  bool shutting_down_ = false;
  bool finished_ = false;
  ServerStatistics last_;  // Once groups_ is gone.
};

}  // namespace verbena
