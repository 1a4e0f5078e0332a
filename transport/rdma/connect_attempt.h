// SPDX-License-Identifier: Apache-2.0
//
// One attempt to connect, on a thread of its own, since parts of it block: name servers, and the
// whole TCP handshake of Soft-iWARP, which happens inside rdma_connect(3). The thread knows the
// queue pair by its number only; what is to be done with the pair itself is the manager's.
//
//   look up the host -> resolve address -> resolve route -> connect -> the peer's answer
//
// A host with several addresses is tried at each, in their order, until one of them answers.
//
// Every step ends by the deadline, or when the attempt is cancelled. A look-up that does not end in
// time is left to a thread that owns all it uses. A handshake is interrupted: in the kernel it
// holds the queue pair, whose destruction would wait for it (for TCP with a black hole: two
// minutes).
//
// Threads: made and destroyed by the manager's.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "verbena/base/unique_fd.h"
#include "verbena/transport/event_queue.h"
#include "verbena/transport/rdma/cm_id.h"
#include "verbena/transport/rdma/resolve.h"

namespace verbena::rdma {

// How an attempt ended.
struct ConnectResult {
  uint64_t ticket = 0;  // The plan's.
  CmId id;              // With the peer's answer, if there was one.
  CmEvent answer{};
  absl::Status status;  // Not OK: no answer, or a rejection (then answer.type says so).
};
using ConnectResults = EventQueue<ConnectResult>;

struct ConnectPlan {
  uint64_t ticket = 0;  // The manager's name for the attempt.
  Address address;
  ConnectOptions options;
  std::string device;  // The queue pair's.
  uint32_t queue_pair_number = 0;
  uint8_t reads_in_flight_max = 1;
  bool connect_blocks = false;  // iWARP.
};

class ConnectAttempt {
 public:
  // Puts exactly one result into `results`, unless it is cancelled. Errors: RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<ConnectAttempt>> Start(
      ConnectPlan plan, std::shared_ptr<ConnectResults> results);
  // Cancels and waits for the thread, which takes microseconds, on iWARP perhaps milliseconds.
  ~ConnectAttempt();

 private:
  using Clock = std::chrono::steady_clock;

  ConnectAttempt(ConnectPlan plan, std::shared_ptr<ConnectResults> results, UniqueFd cancel);
  void Run();
  absl::Status RunSteps(ConnectResult* result);
  absl::StatusOr<std::vector<SocketAddress>> LookUpHost();
  absl::Status TryOne(const SocketAddress& address, ConnectResult* result);
  absl::Status Resolve(const SocketAddress& address, CmId* id);
  absl::Status NoWay(const SocketAddress& address, const char* call, int error) const;
  absl::Status Connect(ConnectResult* result);
  // The next event of the id. Errors: UNAVAILABLE when the time is over, CANCELLED.
  absl::Status Await(const CmId& id, CmEvent* event);
  absl::Status Expect(const CmId& id, rdma_cm_event_type type);
  // Waits for `fd` to be readable. Errors: as Await.
  absl::Status WaitFor(int fd, const char* what);
  std::chrono::milliseconds Left() const;

  const ConnectPlan plan_;
  const std::shared_ptr<ConnectResults> results_;
  const UniqueFd cancel_;  // An eventfd: readable when cancelled.
  const Clock::time_point deadline_;
  std::thread thread_;
};

}  // namespace verbena::rdma
