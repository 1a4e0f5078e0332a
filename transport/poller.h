// SPDX-License-Identifier: Apache-2.0
//
// Poller: one completion queue with the endpoints, timers and connection events that belong to it,
// and one step of work at a time. Who takes the steps, and on which thread, is the driver's affair
// (poller_driver.h).
//
// Threads: one at a time for everything but Submit. RunOnce makes no system call while there are
// completions; connection events and timers are looked at every kHousekeepingNs.
// Lifetime: endpoints are registered and buried by the connections above; the poller goes last.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/base/clock.h"
#include "verbena/base/cycle_clock.h"
#include "verbena/base/mpsc_queue.h"
#include "verbena/base/timer_wheel.h"
#include "verbena/transport/background_worker.h"
#include "verbena/transport/device.h"
#include "verbena/transport/endpoint.h"
#include "verbena/transport/endpoint_host.h"

namespace verbena {

// A timer that says what to do when it fires. Fires on the poller's thread.
class PollerTimer : public Timer {
 public:
  virtual void OnTimer() = 0;

 protected:
  ~PollerTimer() = default;
};

// Work handed over from another thread. Two pointers, so that the queue never allocates.
struct PollerTask {
  void (*function)(void* argument) = nullptr;
  void* argument = nullptr;
};

class Poller final : private EndpointHost {
 public:
  // `completions_max`: entries of the completion queue, the sum of Endpoint::CompletionsMax over
  // the endpoints it shall carry. `device_owner`: what keeps the device alive; Buffers that were
  // received keep it, too. Errors: the device's.
  static absl::StatusOr<std::unique_ptr<Poller>> Create(
      Device& device, uint32_t completions_max, const Clock& clock,
      std::shared_ptr<const void> device_owner = nullptr);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  Device& device() { return device_; }
  CompletionQueue& completion_queue() { return *completion_queue_; }
  ConnectionManager& connection_manager() { return *connection_manager_; }
  int64_t NowNs() const { return clock_.NowNs(); }
  const EndpointHost* endpoint_host() const { return this; }

  // ---- Work ----

  // Polls once, dispatches, runs submitted tasks and, now and then, housekeeping. Returns how many
  // completions, tasks and events it handled; 0 means idle.
  size_t RunOnce();
  // Steps, looking at everything in each, until `done()` or until about `bound_ns` have passed. For
  // endings, when nobody drives the poller any more.
  template <class Done>
  void RunUntil(int64_t bound_ns, Done done) {
    const int64_t end_ns = NowNs() + bound_ns;
    while (!done() && NowNs() < end_ns) {
      LookAtEverything();
      RunOnce();
    }
  }
  // RunUntil every endpoint is freed. All are buried, so Bury's own bounds end this one, too.
  void Drain() {
    RunUntil(kCloseBoundNs + 2 * kDrainBoundNs, [this] { return endpoint_count() == 0; });
  }
  // Any thread. False when the queue is full; back off and try again.
  bool Submit(PollerTask task) { return tasks_.TryPush(std::move(task)); }
  // How the poller's own background work hands its results over: something that wakes whoever
  // sleeps. Null: Submit, and whoever drives comes by.
  void set_submitter(std::function<void(PollerTask)> submitter);
  bool HasTasks() const { return !tasks_.Empty(); }

  // ---- Timers ----

  void Schedule(PollerTimer* timer, int64_t deadline_ns) { timers_.Schedule(timer, deadline_ns); }
  void Cancel(PollerTimer* timer) { timers_.Cancel(timer); }

  // ---- Endpoints ----

  // An endpoint on this completion queue; its completions and connection events are dispatched
  // from now on. Every endpoint made here ends in Bury. Errors: Endpoint::Create's,
  // RESOURCE_EXHAUSTED past 65,535 endpoints, UNAVAILABLE when the completion queue is broken.
  absl::StatusOr<std::unique_ptr<Endpoint>> CreateEndpoint(
      const EndpointOptions& options, Endpoint::Handler* handler,
      std::function<void(ConnectionEvent&)> on_event);
  // Takes an endpoint that its connection is done with. Lets a close frame that is on its way go
  // out (for kCloseBoundNs at most), fails the endpoint if that did not happen yet, and frees it
  // when it is drained, or after kDrainBoundNs (logged).
  void Bury(std::unique_ptr<Endpoint> endpoint);
  // Service() will run in this or the next RunOnce.
  void WantService(Endpoint* endpoint) {
    if (endpoint->service_pending) return;
    endpoint->service_pending = true;
    service_list_.push_back(endpoint);
  }
  // Endpoints made and not yet freed.
  size_t endpoint_count() const { return registrations_.size(); }
  // Requests that arrive at listeners of this poller's connection manager.
  void set_on_connect_request(std::function<void(std::unique_ptr<ConnectionRequest>)> handler) {
    on_connect_request_ = std::move(handler);
  }

  // ---- Sleeping: Arm, RunOnce == 0, wait for fds() or SleepBoundNs(), Woken ----

  void Arm();
  std::array<int, 2> fds() const { return {channel_->fd(), connection_manager_->fd()}; }
  // How long a sleep may last at most, because of timers; at least 0.
  int64_t SleepBoundNs() const;
  void Woken();

 private:
  // Looks at the endpoints, some at a time, whether their peers are there still.
  class LookTimer final : public PollerTimer {
   public:
    explicit LookTimer(Poller* poller) : poller_(poller) {}
    void OnTimer() override { poller_->LookAtPeers(); }

   private:
    Poller* poller_;
  };
  class TendTimer final : public PollerTimer {
   public:
    explicit TendTimer(Poller* poller) : poller_(poller) {}
    void OnTimer() override { poller_->TendEndpoints(); }

   private:
    Poller* poller_;
  };
  struct Entry {
    Endpoint* endpoint = nullptr;
    uint16_t generation = 0;
  };
  struct Registration {
    Endpoint* endpoint;
    std::function<void(ConnectionEvent&)> on_event;
  };
  struct Grave {
    std::unique_ptr<Endpoint> endpoint;
    int64_t bound_ns;  // Of what it waits for: first its close frame, then its last completion.
    bool draining = false;
  };

  static constexpr size_t kBatch = 32;  // Completions per poll: what eRPC, brpc and Mercury use.
  static constexpr size_t kTasksMax = 4096;
  static constexpr int64_t kHousekeepingNs = 100'000;
  static constexpr int64_t kDrainBoundNs = 1'000'000'000;
  // A few round trips, whatever the network; a peer that is gone must not hold us up.
  static constexpr int64_t kCloseBoundNs = 100'000'000;
  // Endpoints looked at when the look timer fires: few enough not to delay a message by more than
  // some 10 us. A poller that slept meanwhile looks at all of them: it had no messages to delay,
  // and waking up and arming again costs more than looking.
  static constexpr size_t kLooksPerFiring = 64;
  // With so many connections that it would fire more often than this, more are looked at at once.
  static constexpr int64_t kLookTimerMinNs = 2'000'000;
  // Idle steps between two looks at the cycle counter, which costs as much as a poll.
  static constexpr uint32_t kStepsPerClock = 4;
  // Polls in one idle step. The loop around them is as tight as waiting can be; what else a step
  // looks at comes some 0.2 us later for it.
  static constexpr uint32_t kPollsPerStep = 8;

  Poller(Device& device, const Clock& clock);
  // EndpointHost.
  void RunInBackground(EndpointId id, std::function<Continuation()> work) override;
  void TendWithin(Endpoint* endpoint, int64_t interval_ns) override;
  void TendEndpoints();
  void RunContinuations();
  // The next step does its housekeeping, whenever the last was.
  void LookAtEverything() {
    next_housekeeping_ = 0;
    steps_ = kStepsPerClock;
  }
  size_t PollCompletions();
  void Dispatch(const WorkCompletion& completion, bool batching);
  void ServiceEndpoints();
  void ContinueService();
  void ServiceIdleEndpoints();
  size_t RunTasks();
  size_t Housekeeping();
  size_t HandleConnectionEvents();
  absl::StatusOr<EndpointId> AllocateId();
  void FreeId(EndpointId id) { free_indices_.push_back(id.index); }
  void WantIdleService(Endpoint* endpoint);
  void StartLooking(const Endpoint& endpoint);
  void LookAtPeers();
  int64_t LookFirings();
  void JudgePeersUnderLoad();
  size_t CheckQueue();
  void BeginDrain(Grave& grave);
  bool IsDone(Grave& grave);
  void FreeDrained();
  void Free(Endpoint& endpoint);

  Device& device_;
  std::shared_ptr<const void> device_owner_;
  const Clock& clock_;
  const CycleClock cycles_;
  std::unique_ptr<CompletionChannel> channel_;
  std::unique_ptr<CompletionQueue> completion_queue_;
  std::unique_ptr<ConnectionManager> connection_manager_;
  MpscQueue<PollerTask> tasks_;
  TimerWheel timers_;

  std::array<WorkCompletion, kBatch> completions_;
  std::vector<Entry> entries_;  // By EndpointId::index.
  std::vector<uint16_t> free_indices_;
  std::vector<Endpoint*> service_list_;
  std::vector<Endpoint*> servicing_;
  std::vector<Endpoint*> going_on_;   // Have more to post than one step may.
  std::vector<Endpoint*> idle_list_;  // Want ServiceIdle().
  std::vector<Endpoint*> idling_;
  absl::flat_hash_map<const QueuePair*, Registration> registrations_;
  std::vector<Grave> graves_;
  std::function<void(std::unique_ptr<ConnectionRequest>)> on_connect_request_;

  TendTimer tend_timer_;
  int64_t tend_at_ns_ = 0;  // When tend_timer_ fires, if it is scheduled.
  std::vector<Endpoint*> tended_;  // Each once.
  std::vector<Endpoint*> tending_;

  LookTimer look_timer_;
  int64_t look_interval_ns_ = 0;  // In which each endpoint is looked at once.
  int64_t next_look_ns_ = 0;
  size_t look_cursor_ = 0;  // In entries_.
  bool slept_ = false;      // Since the look timer fired last.
  uint64_t polled_since_suspicion_ = 0;

  absl::Status arm_error_;
  absl::Status broken_;  // Not OK: the completion queue is of no use any more, and why.

  uint32_t steps_ = 0;
  uint64_t housekeeping_ticks_ = 0;
  uint64_t next_housekeeping_ = 0;

  // Work that was done in the background.
  struct Finished {
    EndpointId id;
    Continuation then;
  };
  std::mutex background_mutex_;
  // Both guarded by background_mutex_.
  std::vector<Finished> finished_;
  std::function<void(PollerTask)> submitter_;
  // Last: its thread uses the rest.
  BackgroundWorker worker_;
};

}  // namespace verbena
