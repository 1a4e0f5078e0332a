// SPDX-License-Identifier: Apache-2.0
//
// The endpoint's part of the payload path: its frames and immediates, and what the path needs of
// the queue pair.

#include <algorithm>
#include <cstring>
#include <utility>

#include "glog/logging.h"
#include "verbena/transport/endpoint.h"

namespace verbena {
namespace {

// Places in the send queue that the payload path leaves to frames.
constexpr uint32_t kFramesReserve = 4;
// Notes that wait for room, before their list has to grow: a zone each, of 64 calls in flight.
constexpr size_t kNotesReserved = 64;
// How often it is looked whether memory has come back that a message waits for; and at what is
// idle.
constexpr int64_t kTendSoonNs = 2'000'000;
constexpr int64_t kTendNs = 200'000'000;

}  // namespace

PayloadPath& Endpoint::payload() {
  if (payload_ == nullptr) {
    PayloadPort& port = *this;
    payload_ = std::make_unique<PayloadPath>(port, *capabilities_, *memory_);
    notes_.reserve(kNotesReserved);
    host_.TendWithin(this, kTendNs);
  }
  return *payload_;
}

// ---- For the layer above ----

PayloadCounters Endpoint::payload_counters() const {
  if (payload_ == nullptr) return {};
  PayloadCounters counters = payload_->counters;
  counters.memory_bytes = memory_->bytes();
  return counters;
}

absl::StatusOr<Buffer> Endpoint::TakeStaging(size_t bytes) {
  return memory_->staging()->Take(bytes);
}

absl::Status Endpoint::SendPayload(OutgoingFrame frame) {
  return payload().sender.Start(std::move(frame));
}

bool Endpoint::AbortPayload(uint32_t call_id) {
  return payload_ != nullptr && payload_->sender.Abort(call_id);
}

std::optional<ZoneGrant> Endpoint::ExpectResponse(uint64_t bytes) {
  return payload().receiver.ExpectResponse(bytes);
}

void Endpoint::TakeBack(const ZoneGrant& zone) {
  if (payload_ != nullptr) payload_->receiver.TakeBack(zone.immediate);
}

void Endpoint::EndExpected(uint64_t bytes) {
  if (payload_ != nullptr) payload_->receiver.EndExpected(bytes);
}

void Endpoint::DropIncoming(uint32_t call_id) {
  if (payload_ != nullptr) payload_->receiver.DropIncoming(call_id);
}

void Endpoint::RegrantZones() {
  if (payload_ != nullptr && state_ == State::kOpen) payload_->receiver.Regrant();
}

int64_t Endpoint::Tend(int64_t now_ns) {
  if (payload_ == nullptr || state_ != State::kOpen) return 0;
  payload_->sender.Sweep();
  payload_->receiver.Tend(now_ns);
  TellPayloadEvents();
  return payload_->receiver.WantsTendingSoon() ? kTendSoonNs : kTendNs;
}

// ---- PayloadPort ----

bool Endpoint::CanPost(bool credit) const {
  return state_ == State::kOpen && SendQueueFree() > kFramesReserve &&
         (!credit || credits_.CanSpend(CreditClass::kData));
}

uint32_t Endpoint::Post(SendWorkRequest& request, bool credit) {
  DCHECK(reserved_ == nullptr) << "a work request inside of a frame";
  if (pending_ != 0) PostPending();
  if (credit) credits_.Spend();
  ++sends_posted_;
  sends_unsignaled_ = 0;
  slots_unsignaled_ = 0;
  request.flags |= kSendSignaled;
  request.wr_id = WorkRequestId::Send(id_, sends_posted_, slots_used_).value();
  if (absl::Status status = queue_pair_->PostSend({&request, 1}); !status.ok()) Break(status);
  return sends_posted_;
}

void Endpoint::SendNote(FrameKind kind, uint32_t call_id, const void* frame, size_t bytes) {
  if (notes_.empty() && TrySendNote(kind, call_id, frame, bytes)) return;
  Note& note = notes_.emplace_back();
  note.kind = kind;
  note.call_id = call_id;
  note.bytes = static_cast<uint32_t>(bytes);
  std::memcpy(note.frame.data(), frame, bytes);
}

bool Endpoint::TrySendNote(FrameKind kind, uint32_t call_id, const void* frame, size_t bytes) {
  if (state_ != State::kOpen) return false;  // The peer's frames may come before Open does.
  std::byte* const memory = Reserve(bytes);
  if (memory == nullptr) return false;
  std::memcpy(memory, frame, bytes);
  Commit(kind, call_id);
  return true;
}

void Endpoint::FlushNotes() {
  size_t sent = 0;
  while (sent < notes_.size() && TrySendNote(notes_[sent].kind, notes_[sent].call_id,
                                             notes_[sent].frame.data(), notes_[sent].bytes)) {
    ++sent;
  }
  notes_.erase(notes_.begin(), notes_.begin() + static_cast<ptrdiff_t>(sent));
}

void Endpoint::MakeInBackground(uint32_t size_class) {
  host_.RunInBackground(id_, [pool = memory_->zones(), size_class] {
    auto block = std::make_shared<absl::StatusOr<Buffer>>(pool->Make(size_class));
    return [block, size_class](Endpoint& endpoint) {
      endpoint.payload_->receiver.OnBlockMade(size_class, std::move(*block));
    };
  });
}

void Endpoint::RegisterInBackground(const Buffer& buffer) {
  host_.RunInBackground(id_, [domain = domain_, buffer] {
    const BufferBlock& block = *buffer.block();
    auto region = domain->RegisterMemory(block.bytes.data(), block.bytes.size(), kAccessLocalRead);
    auto made = std::make_shared<absl::StatusOr<Registration>>(
        region.ok()
            ? absl::StatusOr<Registration>(Registration{block.memory, domain, *std::move(region)})
            : region.status());
    return [made, id = block.id](Endpoint& endpoint) {
      endpoint.payload_->sender.OnRegistered(id, std::move(*made));
    };
  });
}

// ---- The peer's frames ----

FrameDefect Endpoint::OnZoneFrame(std::span<const std::byte> frame) {
  switch (reinterpret_cast<const FrameHeader*>(frame.data())->kind) {
    case FrameKind::kZone: {
      ZoneHeader header;
      std::memcpy(&header, frame.data(), sizeof(header));
      return payload().sender.OnZone(header.frame.call_id, header.zone);
    }
    case FrameKind::kWantZone: {
      WantZoneHeader header;
      std::memcpy(&header, frame.data(), sizeof(header));
      return OnWantZone(header);
    }
    default:
      break;
  }
  ZoneNoteHeader note;
  std::memcpy(&note, frame.data(), sizeof(note));
  if (payload_ == nullptr) return FrameDefect::kZone;
  switch (note.frame.kind) {
    case FrameKind::kRecallZone:
      payload_->sender.OnRecall(note.immediate);
      return FrameDefect::kNone;
    case FrameKind::kReturnZone:
      return payload_->receiver.OnReturn(note.immediate);
    default:
      return payload_->receiver.OnLanded(note.immediate);
  }
}

FrameDefect Endpoint::OnWantZone(const WantZoneHeader& want) {
  if (handler_ == nullptr || !handler_->OnZoneWanted(want.frame.call_id)) return FrameDefect::kNone;
  return payload().receiver.OnWantZone(want.frame.call_id, want.bytes);
}

void Endpoint::OnImmediate(uint32_t slot, uint32_t immediate) {
  if (state_ == State::kDraining || closed_told_) return;
  const FrameDefect defect =
      payload_ != nullptr ? payload_->receiver.OnLanded(immediate) : FrameDefect::kZone;
  if (defect != FrameDefect::kNone) {
    FailProtocol(defect);
    return;
  }
  ReleaseReceive(slot);
}

FrameDefect Endpoint::TakeReplyZone(std::span<const std::byte> frame, bool landed) {
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
  if (header.kind != FrameKind::kRequest || (header.flags & kFrameReplyZone) == 0) {
    return FrameDefect::kNone;
  }
  const FrameBody body(frame, landed);
  return body.has_reply_zone() ? payload().sender.OnZone(0, body.reply_zone()) : FrameDefect::kNone;
}

// ---- Work ----

void Endpoint::ServicePayload() {
  if (state_ != State::kOpen) return;
  TellPayloadEvents();
  if (state_ != State::kOpen) return;
  if (!notes_.empty()) FlushNotes();
  payload_->receiver.Service();
  payload_->sender.Progress();
  if (payload_->receiver.has_events()) TellPayloadEvents();
  if (payload_->receiver.WantsTendingSoon()) {
    host_.TendWithin(this, kTendSoonNs);
  }
}

void Endpoint::TellPayloadEvents() {
  PayloadReceiver& receiver = payload_->receiver;
  // A handler may bring about more of them, or the end of the endpoint's connection.
  for (size_t i = 0; i < receiver.landed().size(); ++i) {
    Buffer frame = std::move(receiver.landed()[i]);
    if (closed_told_ || state_ != State::kOpen) break;
    if (const FrameDefect defect = ValidateLanded(frame.span()); defect != FrameDefect::kNone) {
      FailProtocol(defect);
      break;
    }
    const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
    if (header.credits != 0) {
      FailProtocol(FrameDefect::kReservedBits);
      break;
    }
    if (const FrameDefect defect = TakeReplyZone(frame.span(), /*landed=*/true);
        defect != FrameDefect::kNone) {
      FailProtocol(defect);
      break;
    }
    if (handler_ != nullptr) handler_->OnLanded(std::move(frame));
  }
  receiver.landed().clear();
  for (size_t i = 0; i < receiver.denied().size(); ++i) {
    const PayloadReceiver::Denied denied = std::move(receiver.denied()[i]);
    if (!closed_told_ && handler_ != nullptr) {
      handler_->OnPayloadDenied(denied.call_id, denied.why, /*sent=*/true);
    }
  }
  receiver.denied().clear();
  for (const auto& [call_id, why] : payload_->sender.TakeFailed()) {
    if (!closed_told_ && handler_ != nullptr) {
      handler_->OnPayloadDenied(call_id, why, /*sent=*/false);
    }
  }
}

}  // namespace verbena
