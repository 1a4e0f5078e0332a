// SPDX-License-Identifier: Apache-2.0
//
// RawPeer: one end of a connection driven by hand, with a queue pair and nothing above it. It says
// whatever hello and sends whatever frames a test wants, and never does anything by itself but post
// its receives again.
//
// Every wait is bounded by kHangBound and throws when it is passed, which fails the test. While it
// waits it calls the pump, if there is one: whatever else the same thread has to drive.
// Threads: one.

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verbena/tests/support/frames.h"
#include "verbena/transport/device.h"

namespace verbena {

struct RawPeerOptions {
  uint32_t ring_depth = 128;
  uint32_t slot_bytes = 4096;
  bool posts_receives_again = true;
};

class RawPeer {
 public:
  explicit RawPeer(Device& device, const RawPeerOptions& options = {});
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void set_pump(std::function<void()> pump) { pump_ = std::move(pump); }

  // ---- The handshake ----

  // A hello that fits the options.
  Hello GoodHello() const;
  void Connect(const Address& address, const PrivateData& hello);
  void Listen(const Address& address);
  // Waits for a connection request; keeps it for Accept or Reject.
  PrivateData AwaitRequest();
  void Accept(const PrivateData& hello);
  void Reject(const PrivateData& reason);
  // Makes a new queue pair after one connection has ended, for the next.
  void Renew();
  // Waits for the next event and returns it.
  ConnectionEvent AwaitEvent();
  // Connect, or AwaitRequest and Accept, with good hellos, and wait until it is established.
  // Returns the other side's hello.
  Hello ConnectAndOpen(const Address& address);
  Hello AcceptAndOpen();

  // ---- Frames ----

  // Sends a frame as it is.
  void Send(const Frame& frame);
  // The next frame that came.
  Frame AwaitFrame();
  // The next frame that is no grant.
  Frame AwaitAnswer();
  // The next frame of this kind; those of others stay where they are.
  Frame AwaitKind(FrameKind kind);
  // Frames that are here now, after one step.
  size_t FramesWaiting();
  // Those of them of this kind.
  size_t FramesWaiting(FrameKind kind);

  // ---- RDMA ----

  // Writes into memory that the other side granted, `offset` bytes behind its begin. Returns when
  // it is posted; what comes of it is for broken() to say.
  void Write(const ZoneGrant& zone, uint64_t offset, std::span<const std::byte> bytes);
  // The same, and announces it.
  void WriteWithImm(const ZoneGrant& zone, uint64_t offset, std::span<const std::byte> bytes,
                    uint32_t immediate);
  // Until all that was posted is over.
  void AwaitSent();
  // The next immediate that came.
  uint32_t AwaitImmediate();
  // Those that are here now, after one step.
  size_t ImmediatesWaiting();
  // New memory of zeros that the other side may write to until the peer's end, and what to tell it.
  ZoneGrant OfferZone(size_t bytes);
  std::span<std::byte> ZoneBytes(const ZoneGrant& zone);

  // ---- The end ----

  // Until the other side is gone.
  void AwaitDisconnected();
  void Disconnect();
  // Destroys the queue pair without a word.
  void Vanish() { pair_.reset(); }

  // One step of everything.
  void Step();
  void StepUntil(const std::function<bool()>& done, const char* what);
  bool disconnected() const { return disconnected_; }
  // Whether a send or receive ended in an error, as all do after the end.
  bool broken() const { return broken_; }
  QueuePair& queue_pair() { return *pair_; }
  uint64_t receiver_not_ready() const { return pair_->counters().receiver_not_ready; }

 private:
  void MakePair();
  void PostReceive(uint32_t slot);
  void PostSend(Opcode opcode, std::span<const std::byte> bytes, const RemoteTarget& remote,
                uint32_t immediate);

  Device& device_;
  const RawPeerOptions options_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<ConnectionManager> manager_;
  std::unique_ptr<MemoryRegion> receive_memory_;
  std::unique_ptr<MemoryRegion> send_memory_;
  std::vector<std::unique_ptr<MemoryRegion>> offered_;  // By Immediate::index.
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ConnectionRequest> request_;
  std::unique_ptr<QueuePair> pair_;
  std::deque<ConnectionEvent> events_;
  std::deque<Frame> frames_;
  std::deque<uint32_t> immediates_;
  uint32_t sends_outstanding_ = 0;
  uint64_t sends_ = 0;
  bool disconnected_ = false;
  bool broken_ = false;
  std::function<void()> pump_;
};

}  // namespace verbena
