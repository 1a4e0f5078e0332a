// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/payload_sender.h"

#include <algorithm>
#include <utility>

namespace verbena {
namespace {

// Registering pins pages, which is slow; what is no more than this is done at once.
constexpr size_t kRegisterHereBytesMax = 256 * 1024;

// Entries of chunks that are over, before those behind are moved up.
constexpr size_t kInQueueSlack = 64;

// Answers that are still to come, as far as we count: those that land are never seen.
constexpr int64_t kFramesDue = 64;

}  // namespace

PayloadSender::PayloadSender(PayloadPort& port, std::shared_ptr<ProtectionDomain> domain,
                             uint64_t domain_id, const Capabilities& can, PayloadCounters& counters)
    : port_(port),
      domain_(std::move(domain)),
      domain_id_(domain_id),
      write_with_imm_(can.write_with_imm),
      counters_(counters) {}

PayloadSender::~PayloadSender() = default;

PayloadSender::Transfer* PayloadSender::NewTransfer() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Transfer>());
    free_.push_back(all_.back().get());
  }
  Transfer* const transfer = free_.back();
  free_.pop_back();
  return transfer;
}

void PayloadSender::Free(Transfer* transfer) {
  *transfer = {};
  free_.push_back(transfer);
}

// ---- Starting ----

absl::Status PayloadSender::Start(OutgoingFrame frame) {
  Transfer* const transfer = NewTransfer();
  transfer->frame = std::move(frame);
  const absl::StatusOr<bool> complete = FindKeys(*transfer);
  if (!complete.ok()) {
    Free(transfer);
    return complete.status();
  }
  waiting_.push_back(transfer);
  if (*complete) FindZone(transfer);
  return absl::OkStatus();
}

absl::StatusOr<bool> PayloadSender::FindKeys(Transfer& transfer) {
  transfer.keys.clear();
  bool complete = true;
  for (size_t i = 0; i < PieceCount(transfer); ++i) {
    BufferBlock* const block = Piece(transfer, i).block();
    if (block->domain_id == domain_id_) {
      transfer.keys.push_back(block->region->local_key());
      continue;
    }
    const auto found = registrations_.find(block->id);
    if (found != registrations_.end()) {
      if (found->second.region != nullptr) {
        transfer.keys.push_back(found->second.region->local_key());
      } else {
        complete = false;  // Being made.
      }
      continue;
    }
    Registration& made = registrations_[block->id];
    made.memory = block->memory;
    made.domain = domain_;
    if (block->bytes.size() > kRegisterHereBytesMax) {
      port_.RegisterInBackground(Piece(transfer, i));
      complete = false;
      continue;
    }
    auto region =
        domain_->RegisterMemory(block->bytes.data(), block->bytes.size(), kAccessLocalRead);
    if (!region.ok()) {
      registrations_.erase(block->id);
      return region.status();
    }
    made.region = *std::move(region);
    transfer.keys.push_back(made.region->local_key());
  }
  return complete;
}

void PayloadSender::OnRegistered(uint64_t block_id, absl::StatusOr<Registration> registration) {
  if (registration.ok()) {
    registrations_[block_id] = *std::move(registration);
  } else {
    registrations_.erase(block_id);
  }
  const std::vector<Transfer*> waiting = waiting_;
  for (Transfer* transfer : waiting) {
    if (transfer->state != State::kKeys) continue;
    absl::StatusOr<bool> complete = registration.ok() ? FindKeys(*transfer) : registration.status();
    if (!complete.ok()) {
      failed_.emplace_back(transfer->frame.call_id, complete.status());
      std::erase(waiting_, transfer);
      Free(transfer);
    } else if (*complete) {
      FindZone(transfer);
    }
  }
}

void PayloadSender::FindZone(Transfer* transfer) {
  if (transfer->zone.immediate == 0 && !ExpectsZone(transfer->frame.landing_bytes)) {
    AskForZone(transfer);
    return;
  }
  transfer->state = State::kSending;
  std::erase(waiting_, transfer);
  sending_.push_back(transfer);
}

void PayloadSender::AskForZone(Transfer* transfer) {
  transfer->state = State::kZone;
  ++counters_.zones_asked;
  WantZoneHeader want{};
  want.bytes = transfer->frame.landing_bytes;
  port_.SendNote(FrameKind::kWantZone, transfer->frame.call_id, &want, sizeof(want));
}

// ---- Zones ----

size_t PayloadSender::FindGranted(uint64_t bytes) const {
  // A long zone is not for a short message: the next long one would have to ask.
  const uint64_t most = std::max<uint64_t>(2 * kBlockBytesMin, 4 * bytes);
  size_t best = granted_.size();
  for (size_t i = granted_.size(); i-- > 0;) {
    if (granted_[i].length < bytes || granted_[i].length > most) continue;
    // Of the message's own size class, or nearly: none is better.
    if (granted_[i].length <= bytes + bytes / 8) return i;
    if (best == granted_.size() || granted_[i].length < granted_[best].length) best = i;
  }
  return best;
}

bool PayloadSender::TakeGranted(uint64_t bytes, ZoneGrant* zone) {
  const size_t best = FindGranted(bytes);
  if (best == granted_.size()) return false;
  *zone = granted_[best];
  granted_.erase(granted_.begin() + static_cast<ptrdiff_t>(best));
  return true;
}

bool PayloadSender::ExpectsZone(uint64_t bytes) const {
  size_t ahead = 0;  // Messages that will take a zone before this one.
  for (const Transfer* transfer : sending_) ahead += transfer->zone.immediate == 0;
  return granted_.size() > ahead && FindGranted(bytes) != granted_.size();
}

FrameDefect PayloadSender::OnZone(uint32_t call_id, const ZoneGrant& zone) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](Transfer* transfer) {
    return transfer->state == State::kZone && transfer->frame.call_id == call_id;
  });
  if (call_id != 0 && found != waiting_.end()) {
    Transfer* const transfer = *found;
    if (zone.length < transfer->frame.landing_bytes) return FrameDefect::kZoneGrant;
    transfer->zone = zone;
    FindZone(transfer);
    return FrameDefect::kNone;
  }
  if (granted_.size() >= Immediate::kZonesMax) return FrameDefect::kZoneGrant;
  granted_.push_back(zone);
  return FrameDefect::kNone;
}

void PayloadSender::OnRecall(uint32_t immediate) {
  const auto found = std::find_if(granted_.begin(), granted_.end(), [&](const ZoneGrant& zone) {
    return zone.immediate == immediate;
  });
  // One that is in use comes back with its message.
  if (found == granted_.end()) return;
  granted_.erase(found);
  ZoneNoteHeader note{};
  note.immediate = immediate;
  port_.SendNote(FrameKind::kReturnZone, 0, &note, sizeof(note));
}

// ---- Giving up ----

bool PayloadSender::Abort(uint32_t call_id) {
  const auto is_it = [&](Transfer* transfer) { return transfer->frame.call_id == call_id; };
  if (const auto found = std::find_if(waiting_.begin(), waiting_.end(), is_it);
      found != waiting_.end()) {
    Transfer* const transfer = *found;
    waiting_.erase(found);
    Free(transfer);
    return true;
  }
  const auto found = std::find_if(sending_.begin(), sending_.end(), is_it);
  if (found == sending_.end()) return false;
  Transfer* const transfer = *found;
  const bool had_turn = found == sending_.begin();
  sending_.erase(found);
  if (had_turn) turn_bytes_ = 0;
  // What is posted lands before anything that is posted later, so the zone is good for another.
  if (transfer->zone.immediate != 0) granted_.push_back(transfer->zone);
  if (transfer->posted) {
    transfer->frame.call_id = 0;
    on_the_way_.push_back(transfer);
  } else {
    Free(transfer);
  }
  return true;
}

// ---- Sending ----

uint64_t PayloadSender::NextChunkBytes(const Transfer& transfer) const {
  const uint64_t left = Piece(transfer, transfer.piece).size() - transfer.piece_done;
  const uint64_t chunk = chunk_bytes();
  // A little more at the end is cheaper than another work request.
  return left <= chunk + chunk / 8 ? left : chunk;
}

bool PayloadSender::IsLastChunk(const Transfer& transfer) const {
  return transfer.piece + 1 == PieceCount(transfer) &&
         Piece(transfer, transfer.piece).size() - transfer.piece_done == NextChunkBytes(transfer);
}

bool PayloadSender::CanProgress() const {
  return !sending_.empty() && bytes_in_queue_ < kWindowChunks * chunk_bytes() &&
         port_.CanPost(IsLastChunk(*sending_.front()));
}

void PayloadSender::Progress() {
  uint64_t posted = 0;
  while (posted < chunk_bytes() && CanProgress()) {
    Transfer* const transfer = sending_.front();
    if (transfer->zone.immediate == 0 &&
        !TakeGranted(transfer->frame.landing_bytes, &transfer->zone)) {
      sending_.erase(sending_.begin());
      waiting_.push_back(transfer);
      AskForZone(transfer);
      continue;
    }
    const uint64_t before = bytes_in_queue_;
    PostChunk(*transfer);
    posted += bytes_in_queue_ - before;
    turn_bytes_ += bytes_in_queue_ - before;
    // Its last bytes don't wait for a round of the others.
    if (!transfer->announced && (turn_bytes_ < kTurnBytes || IsLastChunk(*transfer))) continue;
    turn_bytes_ = 0;
    sending_.erase(sending_.begin());
    (transfer->announced ? on_the_way_ : sending_).push_back(transfer);
  }
}

void PayloadSender::PostChunk(Transfer& transfer) {
  const Buffer& piece = Piece(transfer, transfer.piece);
  const uint64_t bytes = NextChunkBytes(transfer);
  const bool last = IsLastChunk(transfer);
  const ZoneGrant& zone = transfer.zone;
  const ScatterGatherEntry entry = {reinterpret_cast<uint64_t>(piece.data()) + transfer.piece_done,
                                    static_cast<uint32_t>(bytes), transfer.keys[transfer.piece]};
  SendWorkRequest request;
  request.sg_list = {&entry, 1};
  request.remote = {zone.address + transfer.remote_offset, RemoteKey{zone.remote_key}};
  const bool with_imm = last && write_with_imm_;
  request.opcode = with_imm ? Opcode::kWriteWithImm : Opcode::kWrite;
  request.imm_data = zone.immediate;
  transfer.last_posted = port_.Post(request, with_imm);
  transfer.posted = true;
  in_queue_.push_back({transfer.last_posted, static_cast<uint32_t>(bytes)});
  bytes_in_queue_ += bytes;
  bytes_since_frame_ += bytes;
  counters_.bytes_sent += bytes;

  transfer.piece_done += bytes;
  transfer.remote_offset += bytes;
  if (transfer.piece_done == piece.size() && !last) {
    ++transfer.piece;
    transfer.piece_done = 0;
    if (transfer.piece >= BodyPieces(transfer)) {
      transfer.remote_offset = NextAttachmentAt(transfer.remote_offset);
    }
  }
  if (!last) return;
  transfer.announced = true;
  frames_ = std::max(frames_ - 1, -kFramesDue);
  if (with_imm) return;
  ZoneNoteHeader note{};
  note.immediate = zone.immediate;
  port_.SendNote(FrameKind::kLanded, 0, &note, sizeof(note));
}

void PayloadSender::OnRetired(uint32_t count) {
  while (in_queue_first_ < in_queue_.size() && IsRetired(in_queue_[in_queue_first_].count, count)) {
    bytes_in_queue_ -= in_queue_[in_queue_first_++].bytes;
  }
  if (in_queue_first_ == in_queue_.size() || in_queue_first_ >= kInQueueSlack) {
    in_queue_.erase(in_queue_.begin(), in_queue_.begin() + static_cast<ptrdiff_t>(in_queue_first_));
    in_queue_first_ = 0;
  }
  std::erase_if(on_the_way_, [&](Transfer* transfer) {
    if (!IsRetired(transfer->last_posted, count)) return false;
    Free(transfer);
    return true;
  });
}

void PayloadSender::Sweep() {
  // One reference is the registration's own. A new one can only be made of an old one.
  absl::erase_if(registrations_, [](const auto& entry) {
    return entry.second.region != nullptr && entry.second.memory.use_count() == 1;
  });
}

}  // namespace verbena
