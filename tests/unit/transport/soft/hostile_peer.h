// SPDX-License-Identifier: Apache-2.0
//
// A client of the shm wire made by hand, which can do at each step what no correct one does.
//
// Threads: one. Lifetime: destroying it closes its socket, as the death of a process would.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "verbena/transport/soft/key_table.h"
#include "verbena/transport/soft/segment.h"
#include "verbena/transport/soft/shared_memory.h"
#include "verbena/transport/soft/socket.h"
#include "verbena/transport/soft/wire.h"

namespace verbena::soft {

class HostilePeer {
 public:
  static constexpr uint32_t kSlots = 16;
  static constexpr uint32_t kNumber = 77;

  // Connects the socket, and no more.
  explicit HostilePeer(const std::string& name);

  void SendBytes(const std::vector<std::byte>& bytes);
  void Send(const ControlMessage& message, std::vector<int> descriptors = {});
  static ControlMessage Message(MessageType type);

  // The handshake: Request, then the victim accepts, then TakeReply and Ready.
  void Request() { Send(Message(MessageType::kRequest)); }
  void TakeReply();
  void Ready() { Send(Message(MessageType::kReady), {segment_fd(), event_.get(), keys_fd()}); }

  // Waits until the victim has closed the socket; false after `bound_ms`.
  bool AwaitClose(int bound_ms);

  // The victim's segment, once there was a reply.
  SegmentView victim() const { return victim_; }
  std::byte* victim_bytes() const { return victim_mapping_.data(); }
  size_t victim_size() const { return victim_mapping_.size(); }
  // As a correct peer would publish, but with whatever is in `entry`.
  void Publish(uint32_t receive_number, uint32_t length, uint32_t imm_or_key, uint8_t opcode,
               uint8_t flags, uint8_t status);

  // Ours, as the victim maps them.
  SegmentView own() const { return own_; }
  KeyTable& keys() { return *keys_; }
  int segment_fd() const { return segment_.fd.get(); }
  int event_fd() const { return event_.get(); }
  int keys_fd() const { return keys_->fd(); }

 private:
  UniqueFd socket_;
  SealedMemory segment_;
  SegmentView own_;
  UniqueFd event_;
  std::unique_ptr<KeyTable> keys_;
  Mapping victim_mapping_;
  SegmentView victim_;
};

}  // namespace verbena::soft
