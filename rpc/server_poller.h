// SPDX-License-Identifier: Apache-2.0
//
// ServerPoller: one poller of a server, with its thread, its connections and its call pool.
//
// Threads: Submit-like functions from any thread; what ends in OnPoller, and everything used by
// ServerConnection, on the poller's. Lifetime: owned by the server's runtime.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/base/clock.h"
#include "verbena/base/single_writer_counter.h"
#include "verbena/rpc/payload_statistics.h"
#include "verbena/rpc/server.h"
#include "verbena/rpc/server_call.h"
#include "verbena/rpc/server_connection.h"
#include "verbena/transport/poller.h"
#include "verbena/transport/poller_driver.h"

namespace verbena {

// Written by one poller (but `accepting`), read by anyone.
struct ServerPollerCounters {
  SingleWriterCounter connections;
  std::atomic<uint64_t> accepting{0};  // Handed over by AcceptLater, not counted above yet.
  SingleWriterCounter calls;
  SingleWriterCounter calls_in_flight;
  SingleWriterCounter deadlines;
  SingleWriterCounter protocol_errors;
  SingleWriterCounter peers_lost;
  SingleWriterCounter receiver_not_ready;
  PayloadStatistics payload;
};

class ServerPoller {
 public:
  // `options` and `methods` must outlive it. Starts the thread.
  static absl::StatusOr<std::unique_ptr<ServerPoller>> Create(std::shared_ptr<Device> device,
                                                              const ServerOptions& options,
                                                              const MethodTable& methods, int cpu);
  // Closes what is open, drains, joins. The listeners that feed it are gone by then.
  ~ServerPoller();

  // ---- Any thread ----

  void AcceptLater(std::unique_ptr<ConnectionRequest> request, const Hello& hello, uint64_t epoch);
  // From now on requests are answered UNAVAILABLE.
  void RefuseCalls() { shutting_down_.store(true); }
  void CancelCalls();
  void CloseConnections();
  const ServerPollerCounters& counters() const { return counters_; }
  PollerDriver& driver() { return *driver_; }

  // ---- For connections, on the poller ----

  Poller& poller() { return *poller_; }
  const ServerOptions& options() const { return options_; }
  const MethodTable& methods() const { return methods_; }
  ServerCallPool& calls() { return calls_; }
  bool shutting_down() const { return shutting_down_.load(std::memory_order_relaxed); }
  void OnConnectionClosed();

  void CountInFlight(int64_t change) {
    counters_.calls_in_flight.Add(static_cast<uint64_t>(change));
  }
  void CountCall() { counters_.calls.Add(1); }
  void CountDeadline() { counters_.deadlines.Add(1); }
  void CountProtocolError() { counters_.protocol_errors.Add(1); }
  void CountPeerLost() { counters_.peers_lost.Add(1); }
  PayloadStatistics& payload() { return counters_.payload; }
  void CountReceiverNotReady(uint64_t count) { counters_.receiver_not_ready.Add(count); }

 private:
  ServerPoller(const ServerOptions& options, const MethodTable& methods);
  void AcceptOnPoller(std::unique_ptr<ConnectionRequest> request, const Hello& hello,
                      uint64_t epoch);
  void FreeFinishedOnPoller();

  const ServerOptions& options_;
  const MethodTable& methods_;
  const SystemClock clock_;
  ServerCallPool calls_;
  std::unique_ptr<Poller> poller_;
  std::vector<std::unique_ptr<ServerConnection>> connections_;
  bool free_submitted_ = false;
  std::atomic<bool> shutting_down_{false};
  ServerPollerCounters counters_;
  std::unique_ptr<PollerDriver> driver_;
};

}  // namespace verbena
