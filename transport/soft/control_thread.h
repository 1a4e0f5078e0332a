// SPDX-License-Identifier: Apache-2.0
//
// The control thread of a device: handshakes, announcements of memory, the end of peers, and
// timers. It sleeps in epoll while nothing of that happens. The kernel closes the sockets of a
// process that dies, after its last thread has ended: so the end of a socket says that the peer
// touches our memory no more.
//
// One mutex guards all of it, the key tables' allocation, and every change of a queue pair's
// connection. It is held for microseconds (and a mapping), never across anything that waits, and
// never taken on the data path.
//
// Lock order: this mutex, then the locks of managers, inboxes and asynchronous events.
//
// Threads: public functions from any. Files: control_thread.cc (loop, timers), handshake.cc,
// link.cc (connected).

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/transport/connection_manager.h"
#include "verbena/transport/soft/link.h"
#include "verbena/transport/soft/queue_pair.h"

namespace verbena::soft {

class AsyncEvents;
class SoftCompletionQueue;
class SoftMemoryRegion;
class SoftProtectionDomain;

class ControlThread {
 public:
  // `membarrier`: see barrier.h.
  static absl::StatusOr<std::unique_ptr<ControlThread>> Start(bool membarrier, AsyncEvents* events);
  ~ControlThread();

  std::mutex& mutex() { return mutex_; }

  // For connection managers ----------------------------------------------------------------------

  absl::StatusOr<uint64_t> Listen(SoftConnectionManager* manager, const Address& address);
  void StopListening(uint64_t listener);
  absl::Status Connect(SoftConnectionManager* manager, SoftQueuePair* queue_pair,
                       const Address& address, const ConnectOptions& options);
  absl::Status Accept(SoftConnectionManager* manager, uint64_t link, SoftQueuePair* queue_pair,
                      const ConnectOptions& options);
  void Reject(uint64_t link, const PrivateData& reason);
  void Disconnect(SoftQueuePair* queue_pair);
  void AddManager(SoftConnectionManager* manager);
  void ForgetManager(SoftConnectionManager* manager);

  // For queue pairs ------------------------------------------------------------------------------

  void FailQueuePair(SoftQueuePair* queue_pair);
  void SendFault(SoftQueuePair* queue_pair, Fault fault);
  // Ends its connection. Afterwards nothing here knows it, and no event names it.
  void ForgetQueuePair(SoftQueuePair* queue_pair);

  // For completion queues ------------------------------------------------------------------------

  // Wakes the queue, if still armed, about kTick from now.
  void RequestKick(SoftCompletionQueue* queue);
  void ForgetKick(SoftCompletionQueue* queue);

  // For protection domains -----------------------------------------------------------------------

  // Makes a region known to the present and future peers of its domain, until it is withdrawn.
  void AnnounceRegion(SoftProtectionDomain* domain, const ControlMessage& announcement, int fd);
  // Under the mutex.
  void WithdrawRegionLocked(SoftProtectionDomain* domain, uint32_t key);

  // Links and listeners that exist, for tests of leaks.
  size_t LinkCount();

 private:
  struct Listening {
    UniqueFd socket;
    SoftConnectionManager* manager;
    uint32_t pending = 0;
    bool paused = false;
    TimePoint resume_at = TimePoint::max();  // After running out of descriptors.
  };
  struct Announced {
    ControlMessage message;
    int fd;
  };

  ControlThread(bool membarrier, AsyncEvents* events) : membarrier_(membarrier), events_(events) {}

  // control_thread.cc
  void Run();
  void HandleEvent(uint64_t id);
  void Attend(Link& link, TimePoint now);
  int NextTimeoutMs(TimePoint now) const;
  void Wake();
  absl::Status Watch(int fd, uint64_t id, uint32_t events);
  Link* Find(uint64_t id);
  Link& CreateLink(LinkState state);
  void Erase(Link& link);

  // handshake.cc
  void AcceptSockets(uint64_t id, Listening& listening);
  void Pause(uint64_t id, Listening& listening, bool paused);
  void LeaveListener(Link& link);
  void TryConnect(Link& link);
  void HandleRequest(Link& link, const ControlMessage& message);
  void HandleReply(Link& link, const ControlMessage& message,
                   std::vector<UniqueFd>* descriptors);
  void HandleReject(Link& link, const ControlMessage& message);
  void HandleReady(Link& link, const ControlMessage& message,
                   std::vector<UniqueFd>* descriptors);
  absl::Status Establish(Link& link, const ControlMessage& about, uint32_t slots,
                         std::vector<UniqueFd>* descriptors);
  absl::Status CheckQueuePair(const SoftQueuePair* queue_pair) const;
  ControlMessage Introduction(MessageType type, const SoftQueuePair& queue_pair,
                              const ConnectOptions& options) const;
  void Refuse(Link& link, RejectReason reason);

  // link.cc
  void ReadLink(uint64_t id);
  void HandleMessage(Link& link, const ControlMessage& message,
                     std::vector<UniqueFd>* descriptors);
  void HandleRegion(Link& link, const ControlMessage& message, UniqueFd descriptor);
  void HandleRegionGone(Link& link, const ControlMessage& message);
  void HandleFault(Link& link, const ControlMessage& message);
  void AnnounceAll(Link& link);
  void Send(Link& link, const ControlMessage& message, std::span<const int> descriptors);
  void Flush(Link& link);
  // The link ends: tells the application and the queue pair what that means in its state.
  void EndLink(Link& link, absl::Status why, bool peer_gone);
  void PushEvent(Link& link, ConnectionEvent::Type type, const PrivateData& data,
                 absl::Status status);

  const bool membarrier_;
  AsyncEvents* const events_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::thread thread_;

  std::mutex mutex_;
  bool stop_ = false;
  uint64_t last_id_ = 0;  // 0 is the wake descriptor.
  std::unordered_map<uint64_t, std::unique_ptr<Link>> links_;
  std::unordered_map<uint64_t, Listening> listeners_;
  std::set<SoftConnectionManager*> managers_;
  std::set<uint64_t> attended_;  // Links with a deadline or something to repeat every kTick.
  std::unordered_map<SoftQueuePair*, uint64_t> link_of_;
  std::unordered_map<SoftProtectionDomain*, std::unordered_map<uint32_t, Announced>> announced_;
  std::set<SoftCompletionQueue*> kicks_;
  TimePoint kick_at_ = TimePoint::max();
};

}  // namespace verbena::soft
