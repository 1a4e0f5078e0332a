// SPDX-License-Identifier: Apache-2.0
//
// PayloadReceiver: the receiving half of the payload path. It owns the table of zones, grants them,
// and hands out what landed.
//
//   state         waits for                            leaves when
//   kFree         a block to be granted                granted                -> kGranted
//   kGranted      the peer's message                   its immediate comes    -> kClosing
//                                                      nobody used it lately  -> kRecalled
//   kRecalled     the zone, or its message             either comes           -> kClosing
//   kClosing      the end of the peer's right          invalidated            -> kFree
//
// What the peer may write to it writes through a memory window of the zone's own, which is closed
// before anybody sees what landed: no byte changes afterwards, whatever the peer does. Devices
// without windows open the whole block for good, so what landed is copied out of it.
//
// Zones are of the connection and of no call: the peer puts whichever message comes into whichever
// zone takes it, so they are never a caller's own memory, and a call may end at any time. They are
// granted when the peer asks, and ahead from then on: as many as it was seen to need at once. A
// zone for a long response may ride in the request.
//
// Threads: the poller's. Lifetime: the endpoint's; destroyed after the queue pair, its windows
// before.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/transport/block_pool.h"
#include "verbena/transport/capabilities.h"
#include "verbena/transport/payload_port.h"

namespace verbena {

class PayloadReceiver {
 public:
  // A message that waits for a zone and will not get one.
  struct Denied {
    uint32_t call_id;
    absl::Status why;
  };

  // `zones`: the pool of blocks that the peer may write to. `copies`: of those that it may not;
  // unused where there are memory windows.
  PayloadReceiver(PayloadPort& port, ProtectionDomain& domain, std::shared_ptr<BlockPool> zones,
                  std::shared_ptr<BlockPool> copies, std::shared_ptr<MemoryBudget> process_budget,
                  const Capabilities& can, PayloadCounters& counters);
  ~PayloadReceiver();

  // ---- The peer's frames and immediates ----

  FrameDefect OnLanded(uint32_t immediate);
  FrameDefect OnWantZone(uint32_t call_id, uint64_t bytes);
  FrameDefect OnReturn(uint32_t immediate);
  void OnBlockMade(uint32_t size_class, absl::StatusOr<Buffer> block);
  // All sends up to this count are over.
  void OnRetired(uint32_t count);

  // ---- For the layer above ----

  // A call whose response may need a zone of so many bytes is about to be sent. A zone to ride in
  // its request, if the peer has fewer than there are such calls and one can be granted at once.
  std::optional<ZoneGrant> ExpectResponse(uint64_t bytes);
  // That zone never reached the peer.
  void TakeBack(uint32_t immediate);
  // The call has ended, however.
  void EndExpected(uint64_t bytes);
  // The peer has given up the message of this call: it waits for no zone any more, or is not
  // delivered if its zone is being closed.
  void DropIncoming(uint32_t call_id);

  // Grants zones ahead again whose blocks have come back.
  void Regrant();
  // What could not be done before: posts what found the send queue full, looks whether memory has
  // come back, grants again.
  void Service();

  // What came of it since the last call; empty when nothing did.
  bool has_events() const { return !landed_.empty() || !denied_.empty(); }
  // Messages that landed: whole frames, which begin at multiples of 64.
  std::vector<Buffer>& landed() { return landed_; }
  std::vector<Denied>& denied() { return denied_; }

  // The queue pair is drained and about to be destroyed: it may not have windows bound to it (rxe
  // waits for them for a minute; InfiniBand specification vol. 1, section 10.6.7.2).
  void DropWindows();

  // ---- Time ----

  // Now and then: what waits too long, what is idle.
  void Tend(int64_t now_ns);
  // Somebody waits for memory that may come back without a word.
  bool WantsTendingSoon() const { return !wants_.empty() || !closing_.empty(); }

  // How long a message waits for memory that others have.
  static constexpr int64_t kMemoryWaitNs = 5'000'000'000;
  // Zones and blocks that nobody used for so long are given back.
  static constexpr int64_t kIdleNs = 1'000'000'000;

 private:
  enum class State : uint8_t { kFree, kGranted, kRecalled, kClosing };
  struct Zone {
    Buffer block;
    Buffer copy;                           // Without windows: where what lands will be copied to.
    std::unique_ptr<MemoryWindow> window;  // Goes before the block.
    State state = State::kFree;
    bool deliver = false;  // kClosing: somebody waits for what landed.
    bool bound = false;    // The window is open.
    bool close_posted = false;
    uint16_t generation = 0;
    uint32_t close_count = 0;  // Count of sends with the invalidation.
  };
  struct Want {
    uint32_t call_id;
    uint32_t size_class;
    int64_t since_ns;  // 0 until Tend has seen it.
    bool making;       // Its block, in the background.
    bool failed;       // To be made, once.
  };
  // Zones granted ahead, of one size class.
  struct Ahead {
    uint32_t size_class;
    uint32_t wanted;     // How many the peer shall have.
    uint32_t granted;    // How many it has.
    uint32_t expecting;  // Calls whose responses may need one.
    bool used;           // Since the last look.
  };

  Zone* Find(uint32_t immediate);
  uint32_t IndexOf(const Zone& zone) const { return static_cast<uint32_t>(&zone - zones_.data()); }
  // Opens a zone for the peer. Null: not now.
  Zone* Open(Buffer block, Buffer copy, ZoneGrant* grant);
  // Without windows: memory for the copy of what lands in a zone of this class. Empty with them.
  absl::StatusOr<Buffer> TakeCopy(uint32_t size_class);
  void SendZone(uint32_t call_id, const ZoneGrant& grant);
  bool TryWant(Want& want);
  bool WaitOrDeny(const Want& want, absl::Status why, bool ever);
  void RetryWants();
  void GrantWanted(const Want& want, Buffer block, Buffer copy);
  void Close(Zone& zone, bool deliver);
  // It came back without a message, and is not granted again.
  void CloseUnused(Zone& zone);
  void PostCloses();
  void FinishClose(Zone& zone);
  void Deliver(Zone& zone);
  // What the frame that landed says; the peer may have written anything.
  static uint32_t LandedCallId(const Zone& zone);
  Ahead& AheadOf(uint32_t size_class);
  void RecallIdle();
  // Asks for all zones back that the peer does not use, and lets go of what is unused here.
  void GiveWay();
  // Zones of this class are granted no more, and those that the peer does not use asked back.
  void Withdraw(Ahead& ahead);
  void NoteRecall(const Zone& zone);
  void TellBudgetWhetherWeWait();

  PayloadPort& port_;
  ProtectionDomain& domain_;
  const std::shared_ptr<BlockPool> pool_;
  const std::shared_ptr<BlockPool> copies_;
  const std::shared_ptr<MemoryBudget> process_budget_;
  const bool windows_;
  PayloadCounters& counters_;

  std::vector<Zone> zones_;
  std::vector<uint32_t> free_zones_;
  std::vector<uint32_t> closing_;  // In kClosing, in the order of their ends.
  std::vector<Want> wants_;
  std::vector<Ahead> ahead_;
  bool waiting_ = false;        // As process_budget_ knows.
  uint32_t ahead_missing_ = 0;  // Sum of wanted - granted.
  int64_t now_ns_ = 0;          // As Tend was told last.
  int64_t swept_ns_ = 0;
  std::vector<Buffer> landed_;
  std::vector<Denied> denied_;
};

}  // namespace verbena
