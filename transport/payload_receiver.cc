// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/payload_receiver.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace verbena {
namespace {

// Making a block pins pages, which is slow; a smaller one is made at once.
constexpr size_t kMakeHereBytesMax = 256 * 1024;

}  // namespace

PayloadReceiver::PayloadReceiver(PayloadPort& port, ProtectionDomain& domain,
                                 std::shared_ptr<BlockPool> zones,
                                 std::shared_ptr<BlockPool> copies,
                                 std::shared_ptr<MemoryBudget> process_budget,
                                 const Capabilities& can, PayloadCounters& counters)
    : port_(port),
      domain_(domain),
      pool_(std::move(zones)),
      copies_(std::move(copies)),
      process_budget_(std::move(process_budget)),
      windows_(can.memory_windows),
      counters_(counters) {}

PayloadReceiver::~PayloadReceiver() {
  if (waiting_) process_budget_->AddWaiter(-1);
}

// ---- Zones ----

PayloadReceiver::Zone* PayloadReceiver::Find(uint32_t immediate) {
  const Immediate name(immediate);
  if (name.kind() != Immediate::kKindLanded || name.index() >= zones_.size()) return nullptr;
  Zone& zone = zones_[name.index()];
  if (zone.generation != name.generation()) return nullptr;
  return zone.state == State::kGranted || zone.state == State::kRecalled ? &zone : nullptr;
}

PayloadReceiver::Zone* PayloadReceiver::Open(Buffer block, Buffer copy, ZoneGrant* grant) {
  if (!port_.CanPost(/*credit=*/false)) return nullptr;
  if (free_zones_.empty()) {
    if (zones_.size() == Immediate::kZonesMax) return nullptr;
    free_zones_.push_back(static_cast<uint32_t>(zones_.size()));
    zones_.emplace_back();
  }
  Zone& zone = zones_[free_zones_.back()];
  if (windows_ && zone.window == nullptr) {
    auto window = domain_.AllocateWindow();
    if (!window.ok()) {
      LOG_EVERY_N(WARNING, 100) << "no memory window for a zone: " << window.status();
      return nullptr;
    }
    zone.window = *std::move(window);
  }
  free_zones_.pop_back();
  MemoryRegion* const region = block.block()->region;
  grant->immediate = Immediate(IndexOf(zone), zone.generation).value();
  grant->address = reinterpret_cast<uint64_t>(block.data());
  grant->length = block.size();
  grant->remote_key = region->remote_key().value;
  if (windows_) {
    SendWorkRequest bind;
    bind.opcode = Opcode::kBindWindow;
    bind.bind = {.window = zone.window.get(),
                 .region = region,
                 .address = grant->address,
                 .length = grant->length,
                 .access = kAccessRemoteWrite,
                 .key = zone.window->NextKey()};
    port_.Post(bind, /*credit=*/false);
    grant->remote_key = bind.bind.key.value;
    zone.bound = true;
  }
  zone.block = std::move(block);
  zone.copy = std::move(copy);
  zone.state = State::kGranted;
  return &zone;
}

void PayloadReceiver::SendZone(uint32_t call_id, const ZoneGrant& grant) {
  ZoneHeader header{};
  header.zone = grant;
  port_.SendNote(FrameKind::kZone, call_id, &header, sizeof(header));
}

// ---- Closing ----

void PayloadReceiver::Close(Zone& zone, bool deliver) {
  zone.deliver = deliver;
  zone.state = State::kClosing;
  zone.close_posted = false;
  closing_.push_back(IndexOf(zone));
  PostCloses();
}

void PayloadReceiver::PostCloses() {
  for (const uint32_t index : closing_) {
    Zone& zone = zones_[index];
    if (zone.close_posted || !zone.bound) continue;
    if (!port_.CanPost(/*credit=*/false)) break;
    SendWorkRequest invalidate;
    invalidate.opcode = Opcode::kLocalInvalidate;
    invalidate.invalidate_key = zone.window->remote_key();
    zone.close_count = port_.Post(invalidate, /*credit=*/false);
    zone.close_posted = true;
  }
  // Without a window nothing is to be waited for.
  while (!closing_.empty() && !zones_[closing_.front()].bound) {
    const uint32_t index = closing_.front();
    closing_.erase(closing_.begin());
    FinishClose(zones_[index]);
  }
}

void PayloadReceiver::OnRetired(uint32_t count) {
  while (!closing_.empty()) {
    Zone& zone = zones_[closing_.front()];
    if (zone.bound && !(zone.close_posted && IsRetired(zone.close_count, count))) break;
    zone.bound = false;
    closing_.erase(closing_.begin());
    FinishClose(zone);
  }
  if (!closing_.empty()) PostCloses();
}

void PayloadReceiver::FinishClose(Zone& zone) {
  if (zone.deliver) Deliver(zone);
  zone.block = Buffer();
  zone.copy = Buffer();
  zone.state = State::kFree;
  ++zone.generation;
  free_zones_.push_back(IndexOf(zone));
}

uint32_t PayloadReceiver::LandedCallId(const Zone& zone) {
  LandingPrefix prefix;
  std::memcpy(&prefix, zone.block.data(), sizeof(prefix));
  if (prefix.gap_bytes >= kLandedAlignment) return 0;  // Deliver() says what that is.
  uint32_t call_id;
  std::memcpy(&call_id,
              zone.block.data() + sizeof(prefix) + prefix.gap_bytes + offsetof(FrameHeader, call_id),
              sizeof(call_id));
  return call_id;
}

void PayloadReceiver::Deliver(Zone& zone) {
  LandingPrefix prefix;
  std::memcpy(&prefix, zone.block.data(), sizeof(prefix));
  if (prefix.gap_bytes >= kLandedAlignment || prefix.gap_bytes % 8 != 0 ||
      prefix.frame_bytes > zone.block.size() - sizeof(prefix) - prefix.gap_bytes ||
      prefix.frame_bytes < sizeof(FrameHeader)) {
    port_.OnDefect(FrameDefect::kLanded);
    return;
  }
  if (std::any_of(std::begin(prefix.reserved), std::end(prefix.reserved),
                  [](uint64_t word) { return word != 0; })) {
    port_.OnDefect(FrameDefect::kReservedBits);
    return;
  }
  Buffer frame = zone.block.Slice(sizeof(prefix) + prefix.gap_bytes, prefix.frame_bytes);
  counters_.bytes_received += prefix.frame_bytes;
  if (!windows_) {
    // The peer can write to the block still.
    Buffer copy = zone.copy.Slice(prefix.gap_bytes, frame.size());
    std::memcpy(copy.data(), frame.data(), frame.size());
    counters_.bytes_copied += frame.size();
    frame = std::move(copy);
  }
  landed_.push_back(std::move(frame));
}

// ---- The peer's frames ----

FrameDefect PayloadReceiver::OnLanded(uint32_t immediate) {
  Zone* const zone = Find(immediate);
  if (zone == nullptr) return FrameDefect::kZone;
  Ahead& ahead = AheadOf(zone->block.block()->size_class);
  --ahead.granted;
  ahead.used = true;
  if (zone->state == State::kGranted) {
    ++ahead_missing_;
  } else {
    --ahead.wanted;  // It was recalled, and is not granted again.
  }
  Close(*zone, /*deliver=*/true);
  return FrameDefect::kNone;
}

FrameDefect PayloadReceiver::OnReturn(uint32_t immediate) {
  Zone* const zone = Find(immediate);
  if (zone == nullptr || zone->state != State::kRecalled) return FrameDefect::kZone;
  CloseUnused(*zone);
  return FrameDefect::kNone;
}

void PayloadReceiver::CloseUnused(Zone& zone) {
  Ahead& ahead = AheadOf(zone.block.block()->size_class);
  --ahead.granted;
  --ahead.wanted;
  Close(zone, /*deliver=*/false);
}

FrameDefect PayloadReceiver::OnWantZone(uint32_t call_id, uint64_t bytes) {
  if (bytes <= sizeof(LandingPrefix) || wants_.size() >= Immediate::kZonesMax) {
    return FrameDefect::kZoneGrant;
  }
  if (bytes > SizeOfClass(kSizeClassCount - 1)) {
    denied_.push_back({call_id, absl::ResourceExhaustedError(absl::StrCat(
                                    "a message of ", bytes, " bytes is longer than any zone"))});
    return FrameDefect::kNone;
  }
  wants_.push_back({call_id, ClassOfSize(bytes), 0, false, false});
  if (TryWant(wants_.back())) wants_.pop_back();
  return FrameDefect::kNone;
}

absl::StatusOr<Buffer> PayloadReceiver::TakeCopy(uint32_t size_class) {
  if (windows_) return Buffer();
  return copies_->Take(SizeOfClass(size_class));
}

// True: it is granted or denied.
bool PayloadReceiver::TryWant(Want& want) {
  if (want.making || !port_.CanPost(/*credit=*/false)) return false;
  absl::StatusOr<Buffer> block = pool_->TakeUnused(want.size_class);
  if (block->block() == nullptr) {
    bool ever = true;
    absl::Status room = pool_->CheckRoom(want.size_class, &ever);
    if (!room.ok()) {
      pool_->Trim();  // Unused blocks of other sizes.
      room = pool_->CheckRoom(want.size_class, &ever);
    }
    if (!room.ok()) return WaitOrDeny(want, std::move(room), ever);
    if (SizeOfClass(want.size_class) > kMakeHereBytesMax) {
      port_.MakeInBackground(want.size_class);
      want.making = true;
      return false;
    }
    block = pool_->Make(want.size_class);
    if (!block.ok()) return WaitOrDeny(want, block.status(), /*ever=*/false);
  }
  absl::StatusOr<Buffer> copy = TakeCopy(block->block()->size_class);
  if (!copy.ok()) return WaitOrDeny(want, copy.status(), /*ever=*/true);
  GrantWanted(want, *std::move(block), *std::move(copy));
  return true;
}

// True: denied.
bool PayloadReceiver::WaitOrDeny(const Want& want, absl::Status why, bool ever) {
  if (ever && (want.since_ns == 0 || now_ns_ - want.since_ns < kMemoryWaitNs)) {
    GiveWay();
    return false;
  }
  denied_.push_back({want.call_id, std::move(why)});
  return true;
}

void PayloadReceiver::OnBlockMade(uint32_t size_class, absl::StatusOr<Buffer> block) {
  const auto want = std::find_if(wants_.begin(), wants_.end(), [&](const Want& waiting) {
    return waiting.making && waiting.size_class == size_class;
  });
  if (want == wants_.end()) return;  // Dropped meanwhile. The block is there for the next.
  want->making = false;
  if (block.ok()) {
    *block = Buffer();  // Unused: TryWant takes it from there.
  } else if (bool ever;
             std::exchange(want->failed, true) && pool_->CheckRoom(size_class, &ever).ok()) {
    // No budget is in the way, so it is the device or the kernel.
    denied_.push_back({want->call_id, block.status()});
    wants_.erase(want);
    return;
  }
  // It may have to wait: the send queue is full, or somebody else took the room since we looked.
  if (TryWant(*want)) wants_.erase(want);
}

void PayloadReceiver::GrantWanted(const Want& want, Buffer block, Buffer copy) {
  const uint32_t size_class = block.block()->size_class;
  ZoneGrant grant;
  if (Open(std::move(block), std::move(copy), &grant) == nullptr) {
    denied_.push_back(
        {want.call_id, absl::ResourceExhaustedError(absl::StrCat(
                           "the connection has all the zones it takes, ", Immediate::kZonesMax))});
    return;
  }
  Ahead& ahead = AheadOf(size_class);
  ++ahead.wanted;
  ++ahead.granted;
  ahead.used = true;
  SendZone(want.call_id, grant);
}

void PayloadReceiver::RetryWants() {
  // In order, so that a long one is not overtaken for ever by short ones.
  for (auto want = wants_.begin(); want != wants_.end();) {
    if (want->making) {
      ++want;
    } else if (TryWant(*want)) {
      want = wants_.erase(want);
    } else if (want->making) {
      ++want;
    } else {
      break;
    }
  }
}

// ---- Zones ahead ----

PayloadReceiver::Ahead& PayloadReceiver::AheadOf(uint32_t size_class) {
  for (Ahead& ahead : ahead_) {
    if (ahead.size_class == size_class) return ahead;
  }
  ahead_.push_back({size_class, 0, 0, 0, true});
  return ahead_.back();
}

void PayloadReceiver::Regrant() {
  // Who waits for memory comes first: a zone ahead is not for a message that has asked.
  if (!wants_.empty()) RetryWants();
  if (!wants_.empty()) return;
  for (Ahead& ahead : ahead_) {
    while (ahead.granted < ahead.wanted && port_.CanPost(/*credit=*/false)) {
      Buffer block = pool_->TakeUnused(ahead.size_class);
      if (block.block() == nullptr || block.block()->size_class != ahead.size_class) break;
      ZoneGrant grant;
      absl::StatusOr<Buffer> copy = TakeCopy(ahead.size_class);
      if (!copy.ok()) break;  // Who asks will wait for it.
      if (Open(std::move(block), *std::move(copy), &grant) == nullptr) return;
      ++ahead.granted;
      --ahead_missing_;
      SendZone(0, grant);
    }
  }
}

void PayloadReceiver::RecallIdle() {
  // The peer was using these when it was asked, and may have given up the message meanwhile.
  for (const Zone& zone : zones_) {
    if (zone.state == State::kRecalled && port_.CanPost(/*credit=*/true)) NoteRecall(zone);
  }
  for (Ahead& ahead : ahead_) {
    if (!std::exchange(ahead.used, false) && ahead.expecting == 0) Withdraw(ahead);
  }
  std::erase_if(ahead_,
                [](const Ahead& ahead) { return ahead.wanted == 0 && ahead.expecting == 0; });
}

void PayloadReceiver::Withdraw(Ahead& ahead) {
  // What is not granted now will not be any more.
  ahead_missing_ -= ahead.wanted - ahead.granted;
  ahead.wanted = ahead.granted;
  for (Zone& zone : zones_) {
    if (zone.state != State::kGranted || zone.block.block()->size_class != ahead.size_class) {
      continue;
    }
    zone.state = State::kRecalled;
    NoteRecall(zone);
  }
}

void PayloadReceiver::NoteRecall(const Zone& zone) {
  ZoneNoteHeader note{};
  note.immediate = Immediate(IndexOf(zone), zone.generation).value();
  port_.SendNote(FrameKind::kRecallZone, 0, &note, sizeof(note));
}

void PayloadReceiver::GiveWay() {
  for (Ahead& ahead : ahead_) Withdraw(ahead);
  pool_->Trim();
  if (copies_ != pool_) copies_->Trim();
}

void PayloadReceiver::TellBudgetWhetherWeWait() {
  const bool wait =
      std::any_of(wants_.begin(), wants_.end(), [](const Want& want) { return !want.making; });
  if (wait == waiting_) return;
  waiting_ = wait;
  process_budget_->AddWaiter(wait ? 1 : -1);
}

// ---- Responses that are expected ----

std::optional<ZoneGrant> PayloadReceiver::ExpectResponse(uint64_t bytes) {
  if (bytes > SizeOfClass(kSizeClassCount - 1)) return std::nullopt;
  const uint32_t size_class = ClassOfSize(bytes);
  {
    Ahead& ahead = AheadOf(size_class);
    ahead.used = true;
    if (++ahead.expecting <= ahead.granted) return std::nullopt;
  }
  Buffer block = pool_->TakeUnused(size_class);
  if (block.block() != nullptr && block.block()->size_class != size_class) block = Buffer();
  if (block.block() == nullptr) {
    bool ever;
    if (!pool_->CheckRoom(size_class, &ever).ok()) return std::nullopt;
    if (SizeOfClass(size_class) > kMakeHereBytesMax) {
      port_.MakeInBackground(size_class);
      return std::nullopt;  // For the next call. This one's response asks, if it is long.
    }
    absl::StatusOr<Buffer> made = pool_->Make(size_class);
    if (!made.ok()) return std::nullopt;
    block = *std::move(made);
  }
  ZoneGrant grant;
  absl::StatusOr<Buffer> copy = TakeCopy(size_class);
  if (!copy.ok() || Open(std::move(block), *std::move(copy), &grant) == nullptr) {
    return std::nullopt;
  }
  Ahead& ahead = AheadOf(size_class);
  if (ahead.granted < ahead.wanted) {
    --ahead_missing_;
  } else {
    ++ahead.wanted;
  }
  ++ahead.granted;
  return grant;
}

void PayloadReceiver::TakeBack(uint32_t immediate) {
  if (Zone* const zone = Find(immediate)) CloseUnused(*zone);
}

void PayloadReceiver::EndExpected(uint64_t bytes) {
  if (bytes > SizeOfClass(kSizeClassCount - 1)) return;
  const uint32_t size_class = ClassOfSize(bytes);
  for (Ahead& ahead : ahead_) {
    // None: it was told to the connection before this one.
    if (ahead.size_class == size_class && ahead.expecting != 0) --ahead.expecting;
  }
}

void PayloadReceiver::DropIncoming(uint32_t call_id) {
  std::erase_if(wants_, [&](const Want& want) { return want.call_id == call_id; });
  for (const uint32_t index : closing_) {
    Zone& zone = zones_[index];
    if (zone.deliver && LandedCallId(zone) == call_id) zone.deliver = false;
  }
}

void PayloadReceiver::Service() {
  if (!closing_.empty()) PostCloses();
  if (!wants_.empty() || ahead_missing_ != 0) Regrant();
  TellBudgetWhetherWeWait();
}

void PayloadReceiver::DropWindows() {
  for (Zone& zone : zones_) zone.window.reset();
}

// ---- Time ----

void PayloadReceiver::Tend(int64_t now_ns) {
  now_ns_ = now_ns;
  for (Want& want : wants_) {
    if (want.since_ns == 0) want.since_ns = now_ns;
  }
  Service();
  if (process_budget_->has_waiters()) GiveWay();
  if (now_ns - swept_ns_ < kIdleNs) return;
  swept_ns_ = now_ns;
  RecallIdle();
  pool_->TrimIdle();
  if (copies_ != pool_) copies_->TrimIdle();
}

}  // namespace verbena
