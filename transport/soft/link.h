// SPDX-License-Identifier: Apache-2.0
//
// What the control thread knows of one connection, from the first byte to the last.
//
//   client:  kConnecting -> kAwaitReply                      -> kConnected
//   server:  kAwaitRequest -> kAwaitDecision -> kAwaitReady  -> kConnected
//
// A link that ends is erased; there is no state for it. Guarded by the control thread's mutex.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "verbena/transport/connection_manager.h"
#include "verbena/transport/soft/shared_memory.h"
#include "verbena/transport/soft/wire.h"

namespace verbena::soft {

class SoftConnectionManager;
class SoftQueuePair;

using TimePoint = std::chrono::steady_clock::time_point;

enum class LinkState {
  kConnecting,     // For room in the server's backlog.
  kAwaitReply,     // For the server's application to decide.
  kAwaitRequest,   // For the first message of whoever connected.
  kAwaitDecision,  // For Accept or Reject. No deadline: the client has one.
  kAwaitReady,     // For the accepted client's segment.
  kConnected,
};

struct Outgoing {
  ControlMessage message;
  int descriptors[kDescriptorsMax];  // Of the queue pair or a region: alive while this is queued.
};

struct Link {
  uint64_t id = 0;
  LinkState state = LinkState::kConnecting;
  UniqueFd socket;
  TimePoint deadline = TimePoint::max();
  SoftConnectionManager* manager = nullptr;  // Null: destroyed, no events.
  SoftQueuePair* queue_pair = nullptr;       // Null before Accept.
  uint64_t listener = 0;                     // While it counts as pending there.
  Address address;                           // Client: whom to connect to.
  ConnectOptions options;
  ControlMessage request;  // Server: the client's.

  // What the kernel did not take yet. Bounded: an announcement and its withdrawal cancel.
  std::deque<Outgoing> outbox;

  // Regions that the peer announced, by index of the key, and the sum of their bytes.
  std::unordered_map<uint32_t, uint64_t> peer_regions;
  uint64_t peer_region_bytes = 0;
};

}  // namespace verbena::soft
