// SPDX-License-Identifier: Apache-2.0
//
// PayloadSender: the sending half of the payload path. It writes messages into zones that the peer
// granted, in chunks, and announces each with the immediate of its last chunk.
//
//   state       waits for                          leaves when
//   kKeys       its memory to be registered        the last piece is     -> kZone
//   kZone       a zone that takes it               one is there          -> kSending
//   kSending    its turn, a credit at the end      the last chunk posted -> kOnTheWay
//                                                  others took the zones -> kZone
//   kOnTheWay   the completion of what was posted  it comes              -> over
//
// Messages that are sent at the same time take turns of kTurnBytes, so a short one does not wait
// for a long one; and only a bounded number of bytes is in the send queue, so small frames do not,
// too. A message takes its zone when it has its first turn, and the one that came back last: of
// many zones only as many are in use, and in the caches, as the peer's pace asks for.
//
// Threads: the poller's. Lifetime: the endpoint's; destroyed when the queue pair is drained, since
// the device may read from what is on the way.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "verbena/transport/buffer.h"
#include "verbena/transport/capabilities.h"
#include "verbena/transport/payload_port.h"

namespace verbena {

// A message for a zone.
struct OutgoingFrame {
  uint32_t call_id = 0;
  // The prefix, the frame's header and all of the frame up to the first attachment,
  Buffer head;
  // unless its message is where it was built: then this is it, right behind the head. Or empty.
  Buffer message;
  // Attachments, without empty ones. They go to multiples of kLandedAlignment behind the head.
  absl::InlinedVector<Buffer, 4> attachments;
  // What the zone must take.
  uint64_t landing_bytes = 0;
};

// Memory registered for one connection.
struct Registration {
  // Both go after the region, which may be the last thing of a connection that somebody holds.
  std::shared_ptr<BlockMemory> memory;
  std::shared_ptr<ProtectionDomain> domain;
  std::unique_ptr<MemoryRegion> region;
};

class PayloadSender {
 public:
  PayloadSender(PayloadPort& port, std::shared_ptr<ProtectionDomain> domain, uint64_t domain_id,
                const Capabilities& can, PayloadCounters& counters);
  ~PayloadSender();

  // Takes a message. Errors: RESOURCE_EXHAUSTED (its memory can't be registered).
  absl::Status Start(OutgoingFrame frame);
  // Gives a message up. True: the peer will not see it, and what was posted of it does no harm.
  // False: it is announced already, or unknown.
  bool Abort(uint32_t call_id);

  // A zone came: for the message of this call, or 0 for any.
  FrameDefect OnZone(uint32_t call_id, const ZoneGrant& zone);
  void OnRecall(uint32_t immediate);
  void OnRegistered(uint64_t block_id, absl::StatusOr<Registration> registration);
  // All sends up to this count are over.
  void OnRetired(uint32_t count);

  // Whether Progress would post something.
  bool CanProgress() const;
  // Posts chunks: as much as may be in one step of the poller.
  void Progress();

  // Messages that are not over.
  size_t in_flight() const { return waiting_.size() + sending_.size() + on_the_way_.size(); }
  // Lets go of registrations of memory that nobody but us refers to.
  void Sweep();
  bool has_registrations() const { return !registrations_.empty(); }
  // Messages whose memory could not be registered: the layer above ends their calls.
  std::vector<std::pair<uint32_t, absl::Status>> TakeFailed() { return std::move(failed_); }

  // A request, response or cancel came in a slot. More of them than there are messages of ours to
  // be answered, or that answer, are calls that shall not wait for long.
  void OnFrame() {
    if (++frames_ <= static_cast<int64_t>(in_flight())) return;
    frames_ = static_cast<int64_t>(in_flight());
    bytes_since_frame_ = 0;
  }

  // Bytes of one WRITE, and of one step of the poller: what a frame may have to wait for. While
  // there are such frames a short one: 16 KiB take 1.5 us in memory at 11 GB/s, or at 100 Gbit/s.
  // Else one long enough that what a chunk costs beside its bytes is nothing.
  static constexpr uint64_t kChunkBytes = 256 * 1024;
  static constexpr uint64_t kChunkBesideFramesBytes = 16 * 1024;
  // There are such frames when the last is no more bytes ago than this: some milliseconds.
  static constexpr uint64_t kFramesLatelyBytes = uint64_t{32} << 20;
  // Chunks in the send queue. A frame on the wire waits for all; and the fastest link needs a few
  // to be busy all the time.
  static constexpr uint64_t kWindowChunks = 4;
  // Bytes of one message before the next has its turn.
  static constexpr uint64_t kTurnBytes = 4 * kChunkBytes;

 private:
  enum class State { kKeys, kZone, kSending };
  struct Transfer {
    OutgoingFrame frame;
    ZoneGrant zone;  // Immediate 0: none yet.
    State state = State::kKeys;
    size_t piece = 0;            // The next bytes to send: of the head (0), or what follows it,
    uint64_t piece_done = 0;     // from here on,
    uint64_t remote_offset = 0;  // to here in the zone.
    uint32_t last_posted = 0;    // Count of sends with the last chunk.
    bool posted = false;
    bool announced = false;
    absl::InlinedVector<LocalKey, 5> keys;  // Of the pieces.
  };

  Transfer* NewTransfer();
  void Free(Transfer* transfer);
  // Pieces of the head and the message.
  static size_t BodyPieces(const Transfer& transfer) {
    return transfer.frame.message.empty() ? 1 : 2;
  }
  static const Buffer& Piece(const Transfer& transfer, size_t index) {
    const OutgoingFrame& frame = transfer.frame;
    if (index == 0) return frame.head;
    const size_t body_pieces = BodyPieces(transfer);
    return index < body_pieces ? frame.message : frame.attachments[index - body_pieces];
  }
  static size_t PieceCount(const Transfer& transfer) {
    return BodyPieces(transfer) + transfer.frame.attachments.size();
  }
  // Looks up or makes the keys. False: some are being made.
  absl::StatusOr<bool> FindKeys(Transfer& transfer);
  // Its memory has keys: it is sent when a zone is to be expected, else asks for one.
  void FindZone(Transfer* transfer);
  void AskForZone(Transfer* transfer);
  // Index in granted_ of the best zone; its size when there is none.
  size_t FindGranted(uint64_t bytes) const;
  bool TakeGranted(uint64_t bytes, ZoneGrant* zone);
  // Whether a zone is there for one more message of these bytes.
  bool ExpectsZone(uint64_t bytes) const;
  uint64_t chunk_bytes() const {
    return bytes_since_frame_ < kFramesLatelyBytes ? kChunkBesideFramesBytes : kChunkBytes;
  }
  uint64_t NextChunkBytes(const Transfer& transfer) const;
  bool IsLastChunk(const Transfer& transfer) const;
  void PostChunk(Transfer& transfer);

  PayloadPort& port_;
  const std::shared_ptr<ProtectionDomain> domain_;
  const uint64_t domain_id_;
  const bool write_with_imm_;
  PayloadCounters& counters_;

  std::vector<std::unique_ptr<Transfer>> all_;
  std::vector<Transfer*> free_;
  std::vector<Transfer*> waiting_;  // kKeys, kZone.
  std::vector<Transfer*> sending_;  // The first has the turn,
  uint64_t turn_bytes_ = 0;         // and has sent so much in it.
  std::vector<Transfer*> on_the_way_;
  std::vector<ZoneGrant> granted_;  // Unused.
  struct InQueue {
    uint32_t count;
    uint32_t bytes;
  };
  std::vector<InQueue>
      in_queue_;  // Chunks that are posted and not over; those before the first are.
  size_t in_queue_first_ = 0;
  uint64_t bytes_in_queue_ = 0;
  int64_t frames_ = 0;  // Less the messages that were sent.
  uint64_t bytes_since_frame_ = kFramesLatelyBytes;
  absl::flat_hash_map<uint64_t, Registration> registrations_;  // By block id.
  std::vector<std::pair<uint32_t, absl::Status>> failed_;
};

}  // namespace verbena
