// SPDX-License-Identifier: Apache-2.0
//
// One RDMA NIC: its context, what it can do, its objects by number, and a thread that takes its
// asynchronous events, marks the queues that they break, and passes them on. It also watches for
// connection events, so that no poller has to ask the kernel for them.
//
// Threads: any. Sources: ibv_query_device_ex(3), ibv_query_port(3), ibv_get_async_event(3).

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "verbena/base/unique_fd.h"
#include "verbena/transport/device.h"
#include "verbena/transport/event_queue.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/handles.h"

namespace verbena::rdma {

class RdmaCompletionQueue;
class RdmaConnectionManager;
class RdmaQueuePair;
class RdmaSharedReceiveQueue;

class RdmaDevice final : public Device {
 public:
  // `verbs` is only read during the call. Errors: UNAVAILABLE saying what this device lacks.
  static absl::StatusOr<std::unique_ptr<RdmaDevice>> Open(ibv_device* verbs);
  ~RdmaDevice() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  bool ServesScheme(std::string_view scheme) const override { return scheme == "rdma"; }
  absl::StatusOr<std::unique_ptr<ProtectionDomain>> AllocateProtectionDomain() override;
  absl::StatusOr<std::unique_ptr<CompletionChannel>> CreateCompletionChannel() override;
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(
      uint32_t depth, CompletionChannel* channel) override;
  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager() override;
  bool PollAsyncEvent(AsyncEvent* event) override { return async_events_.Pop(event); }
  int async_fd() const override { return async_events_.fd(); }

  ibv_context* context() const { return context_.get(); }
  bool is_iwarp() const { return is_iwarp_; }
  bool takes_empty_lists() const { return takes_empty_lists_; }
  uint8_t default_port() const { return port_; }
  // What a peer may do to memory that is open to it.
  unsigned peer_rights() const {
    return IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
           (capabilities_.atomics ? unsigned{IBV_ACCESS_REMOTE_ATOMIC} : 0u);
  }
  uint8_t reads_in_flight_max() const { return reads_in_flight_max_; }
  bool has_active_port() const { return has_active_port_; }

  // Sends that met no receive at the peer, on this device's port, since it was loaded. 0 where the
  // driver does not count them. Reads a file of sysfs, whose values the kernel caches for 12 ms.
  uint64_t ReceiverNotReadyCount() const;

  // ---- Objects by number ----

  // Errors: RESOURCE_EXHAUSTED naming queue_pairs_max.
  absl::Status CountPair();
  void UncountPair() { pair_count_.fetch_sub(1); }
  void AddPair(uint32_t number, RdmaQueuePair* pair);
  void DropPair(uint32_t number);
  // Null if there is none. The caller knows that it lives on: it polls its completion queue.
  RdmaQueuePair* FindPair(uint32_t number);

  // The event thread calls manager->OnReadable() when `fd` becomes so (once per change), until
  // Unwatch. Errors: RESOURCE_EXHAUSTED.
  absl::Status Watch(int fd, RdmaConnectionManager* manager);
  void Unwatch(int fd, RdmaConnectionManager* manager);

  void AddQueue(RdmaCompletionQueue* queue);
  void DropQueue(RdmaCompletionQueue* queue);

  absl::StatusOr<uint32_t> AddSharedReceive(RdmaSharedReceiveQueue* queue);
  void DropSharedReceive(uint32_t number, RdmaSharedReceiveQueue* queue);
  RdmaSharedReceiveQueue* FindSharedReceive(uint32_t number) {
    return shared_receives_[number].load(std::memory_order_acquire);
  }

 private:
  RdmaDevice(Context context, UniqueFd async_event, UniqueFd stop_event, UniqueFd epoll);
  absl::Status Describe();
  absl::Status DescribePorts(const ibv_device_attr& attributes);
  absl::Status StartEventThread();
  void TakeEvents();
  void TakeAsyncEvents();
  void Handle(const ibv_async_event& event);
  void BreakAllQueues(const absl::Status& why);
  void PushAsyncEvent(AsyncEvent event);

  const Context context_;
  Capabilities capabilities_;
  bool is_iwarp_ = false;
  bool takes_empty_lists_ = true;
  bool has_active_port_ = false;
  uint8_t port_ = 1;
  uint8_t reads_in_flight_max_ = 1;
  std::string receiver_not_ready_file_;  // Empty: the driver has none.

  std::atomic<uint32_t> pair_count_{0};
  std::mutex mutex_;
  absl::flat_hash_map<uint32_t, RdmaQueuePair*> pairs_;  // Under mutex_, as the next.
  std::set<RdmaCompletionQueue*> queues_;
  std::set<RdmaConnectionManager*> managers_;
  std::array<std::atomic<RdmaSharedReceiveQueue*>, kSharedReceiveQueuesMax> shared_receives_{};

  EventQueue<AsyncEvent> async_events_;
  const UniqueFd stop_event_;
  const UniqueFd epoll_;  // What the event thread waits for.
  std::thread event_thread_;
};

}  // namespace verbena::rdma
