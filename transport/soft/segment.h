// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of the shm wire. Everything in here is written by one process and read by
// another that trusts nothing it reads.
//
// Each side of a connection owns one RX segment, a sealed memfd that its peer maps for reading and
// writing. The owner posts receives into it; the peer executes its sends by copying payload into
// the owner's memory and publishing a completion entry here:
//
//   control page | completion entries | receive entries | staging slots (sparse)
//
// "Slot" k serves receive number k modulo `slots`. A completion entry is therefore free by
// construction when its receive is posted: nothing but the receive queue has a flow control.
//
// Each domain also has one key table, a memfd that peers map read-only (key_table.h).

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "verbena/transport/soft/constants.h"

namespace verbena::soft {

// Bits of ControlPage::wake.
inline constexpr uint32_t kWakeAny = 1;        // The owner sleeps: write its eventfd.
inline constexpr uint32_t kWakeSolicited = 2;  // The same for solicited messages and errors.
inline constexpr uint32_t kWakeClosed = 4;     // The owner's queue pair is in kError.

struct ControlPage {
  // Owner writes, peer reads when the receives it knows of are used up.
  // Low half: receives posted so far. High half: receives below this number must be looked at
  // before a small message goes into them, since one of them is shorter than
  // kEntryPayloadBytes or has a bad key. Small messages to others need no look at the entry.
  alignas(kLinePairBytes) std::atomic<uint64_t> receive_tail;

  // Owner sets bits, peer clears the two arm bits. Read by the peer after each publication and
  // else untouched, so that the line stays in both caches.
  alignas(kLinePairBytes) std::atomic<uint32_t> wake;

  // Peer writes: odd while it touches memory of the owner other than completion entries. The owner
  // reads it before it declares such memory to be free again.
  alignas(kLinePairBytes) std::atomic<uint32_t> executing;
};
static_assert(sizeof(ControlPage) <= kPageBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// CompletionEntry::opcode.
enum class WireOpcode : uint8_t {
  kSend = 1,
  kSendWithImm = 2,
  kSendWithInvalidate = 3,
  kWriteWithImm = 4,
};

// CompletionEntry::status.
enum class WireStatus : uint8_t {
  kSuccess = 0,
  kTooLong = 1,     // The message is longer than this receive.
  kBadReceive = 2,  // The receive has a bad local key (ReceiveEntry::flags).
};

// CompletionEntry::flags.
inline constexpr uint8_t kEntryInside = 1;  // The payload is in `data`.

// Peer writes, owner reads.
struct alignas(kLinePairBytes) CompletionEntry {
  std::atomic<uint32_t> sequence;  // Receive number + 1; the release-store publishes the rest.
  uint32_t length;                 // Bytes of the message or of the WRITE.
  uint32_t imm_or_key;             // By opcode.
  WireOpcode opcode;
  uint8_t flags;
  WireStatus status;
  uint8_t reserved;  // 0.
  std::byte data[kEntryPayloadBytes];
};
static_assert(sizeof(CompletionEntry) == kLinePairBytes);
static_assert(offsetof(CompletionEntry, data) == 16);

// ReceiveEntry::flags: exactly one.
inline constexpr uint16_t kReceiveDirect = 1;  // Copy to `sge`.
inline constexpr uint16_t kReceiveStaged = 2;  // Copy to the slot's staging area.
inline constexpr uint16_t kReceiveBad = 4;     // Fail with WireStatus::kBadReceive.

struct ReceiveSge {
  uint32_t region;  // Remote key of the region, as it was announced to the peer.
  uint32_t length;
  uint64_t offset;  // From the region's first byte.
};

// Owner writes, peer reads. Published by ControlPage::receive_tail.
struct alignas(64) ReceiveEntry {
  uint32_t length;  // Sum of the parts.
  uint16_t sge_count;
  uint16_t flags;
  ReceiveSge sge[kReceiveSgeMax];
};
static_assert(sizeof(ReceiveEntry) == 64);

// Where the parts of a segment are. Both sides compute it from the number of slots, the only
// thing about it that travels.
struct SegmentLayout {
  explicit constexpr SegmentLayout(uint32_t slot_count)
      : slots(slot_count),
        completions_offset(kPageBytes),
        receives_offset(completions_offset + sizeof(CompletionEntry) * slots),
        staging_offset((receives_offset + sizeof(ReceiveEntry) * slots + kPageBytes - 1) &
                       ~(kPageBytes - 1)),
        bytes(staging_offset + size_t{kStagingBytes} * slots) {}

  static constexpr bool IsValid(uint32_t slot_count) {
    return slot_count != 0 && slot_count <= kQueueDepthMax && (slot_count & (slot_count - 1)) == 0;
  }

  uint32_t slots;  // A power of two.
  size_t completions_offset;
  size_t receives_offset;
  size_t staging_offset;
  size_t bytes;
};

// Views of a mapped segment.
struct SegmentView {
  SegmentView() = default;
  SegmentView(std::byte* base, const SegmentLayout& layout)
      : control(reinterpret_cast<ControlPage*>(base)),
        completions(reinterpret_cast<CompletionEntry*>(base + layout.completions_offset)),
        receives(reinterpret_cast<ReceiveEntry*>(base + layout.receives_offset)),
        staging(base + layout.staging_offset),
        mask(layout.slots - 1) {}

  std::byte* StagingOf(uint32_t receive_number) const {
    return staging + size_t{kStagingBytes} * (receive_number & mask);
  }

  ControlPage* control = nullptr;
  CompletionEntry* completions = nullptr;
  ReceiveEntry* receives = nullptr;
  std::byte* staging = nullptr;
  uint32_t mask = 0;  // slots - 1.
};

// One read of a field that the other process may change at any time.
template <typename T>
inline T ReadOnce(const T& field) {
  T value;
  __atomic_load(&field, &value, __ATOMIC_RELAXED);
  return value;
}

}  // namespace verbena::soft
