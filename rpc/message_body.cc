// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/message_body.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace verbena {
namespace {

// Returns where the message begins.
std::byte* WritePrologue(const OutgoingBody& body, std::byte* to) {
  if (body.reply_zone.has_value()) {
    std::memcpy(to, &*body.reply_zone, sizeof(ZoneGrant));
    to += sizeof(ZoneGrant);
  }
  if (body.attachments.empty()) return to;
  const AttachmentsHeader header = {static_cast<uint32_t>(body.attachments.size()),
                                    static_cast<uint32_t>(body.message_bytes)};
  std::memcpy(to, &header, sizeof(header));
  to += sizeof(header);
  for (const Attachment& attachment : body.attachments) {
    const AttachmentEntry entry = {static_cast<uint32_t>(attachment.buffer.size()),
                                   attachment.field};
    std::memcpy(to, &entry, sizeof(entry));
    to += sizeof(entry);
  }
  return to;
}

// Writes prologue, message and attachments, which are copied, behind the header of a frame in a
// slot.
void WriteSlotBody(const OutgoingBody& body, std::byte* to) {
  to = WritePrologue(body, to);
  body.codec->write(body.message, {to, body.message_bytes});
  to += body.message_bytes;
  for (const Attachment& attachment : body.attachments) {
    if (attachment.buffer.empty()) continue;
    std::memcpy(to, attachment.buffer.data(), attachment.buffer.size());
    to += attachment.buffer.size();
  }
}

// False when there is no room.
bool SendInSlot(Endpoint& endpoint, FrameKind kind, uint32_t call_id, size_t header_bytes,
                const OutgoingBody& body, absl::FunctionRef<void(std::byte* frame)> write_fields,
                uint64_t* bytes_copied) {
  if (body.attachments.empty()) {
    const auto write_head = [&](std::byte* frame) {
      write_fields(frame);
      WritePrologue(body, frame + header_bytes);
    };
    return SendShort(endpoint, kind, call_id, header_bytes + body.prologue_bytes(), *body.codec,
                     body.message, body.message_bytes, write_head, bytes_copied, body.flags());
  }
  std::byte* const slot = endpoint.Reserve(body.SlotBytes(header_bytes));
  if (slot == nullptr) return false;
  write_fields(slot);
  WriteSlotBody(body, slot + header_bytes);
  *bytes_copied += body.attachment_bytes();
  if (body.bytes_in_place() != nullptr) *bytes_copied += body.message_bytes;
  endpoint.Commit(kind, call_id, body.flags());
  return true;
}

// LandingPrefix::gap_bytes for a message that begins so many bytes behind the zone's begin and the
// gap. 0 where no gap helps.
uint64_t GapBefore(const Buffer& message, size_t behind) {
  const uint64_t gap = (reinterpret_cast<uintptr_t>(message.data()) - behind) % kLandedAlignment;
  return gap % 8 == 0 ? gap : 0;
}

// Puts a frame together that goes by RDMA WRITE: prefix, FrameHeader, prologue and message in new
// registered memory, but for a message that can be sent from where it is; and references to the
// attachments.
absl::StatusOr<OutgoingFrame> MakeLandingFrame(
    Endpoint& endpoint, FrameKind kind, uint32_t call_id, size_t header_bytes,
    const OutgoingBody& body, absl::FunctionRef<void(std::byte* frame)> write_fields,
    uint64_t* bytes_copied) {
  if (absl::Status status = body.Check(); !status.ok()) return status;
  OutgoingFrame frame;
  frame.call_id = call_id;
  size_t end = header_bytes + body.prologue_bytes() + body.message_bytes;
  size_t head_bytes = end;
  if (const Buffer* const bytes = body.bytes_in_place();
      bytes != nullptr && !bytes->empty() && endpoint.CanRegister(*bytes)) {
    frame.message = *bytes;
    head_bytes -= bytes->size();
  }
  LandingPrefix prefix{};
  if (!frame.message.empty() && body.attachments.empty()) {
    prefix.gap_bytes = GapBefore(frame.message, sizeof(prefix) + head_bytes);
  }
  const size_t frame_at = sizeof(prefix) + prefix.gap_bytes;
  absl::StatusOr<Buffer> head = endpoint.TakeStaging(frame_at + head_bytes);
  if (!head.ok()) return head.status();
  for (const Attachment& attachment : body.attachments) {
    if (attachment.buffer.empty()) continue;
    end = NextAttachmentAt(end) + attachment.buffer.size();
    frame.attachments.push_back(attachment.buffer);
  }
  prefix.frame_bytes = end;
  std::memcpy(head->data(), &prefix, sizeof(prefix));
  std::memset(head->data() + sizeof(prefix), 0, prefix.gap_bytes);
  std::byte* const at = head->data() + frame_at;
  WriteFrameHeader(at, kind, body.flags(), /*credits=*/0, call_id);
  write_fields(at);
  std::byte* const message = WritePrologue(body, at + header_bytes);
  if (frame.message.empty()) {
    body.codec->write(body.message, {message, body.message_bytes});
    if (body.bytes_in_place() != nullptr) *bytes_copied += body.message_bytes;
  }
  frame.head = *std::move(head);
  frame.landing_bytes = frame_at + end;
  return frame;
}

}  // namespace

absl::Status OutgoingBody::Check() const {
  constexpr size_t kMessageBytesMax = std::numeric_limits<int32_t>::max();
  if (message_bytes > kMessageBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the message has ", message_bytes, " bytes, and Protobuf's limit and FlatBuffers' is ",
        kMessageBytesMax, ": send what is long as attachments"));
  }
  if (attachments.size() > kAttachmentsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(attachments.size(),
                                                     " attachments, and one message has at most ",
                                                     kAttachmentsMax, ": join some"));
  }
  for (const Attachment& attachment : attachments) {
    if (attachment.buffer.size() > std::numeric_limits<uint32_t>::max()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("an attachment of ", attachment.buffer.size(),
                       " bytes: one has at most 4 GiB - 1; send it in slices"));
    }
  }
  return absl::OkStatus();
}

uint8_t OutgoingBody::flags() const {
  return static_cast<uint8_t>((reply_zone.has_value() ? kFrameReplyZone : 0) |
                              (attachments.empty() ? 0 : kFrameAttachments));
}

size_t OutgoingBody::prologue_bytes() const {
  size_t bytes = reply_zone.has_value() ? sizeof(ZoneGrant) : 0;
  if (!attachments.empty()) {
    bytes += sizeof(AttachmentsHeader) + attachments.size() * sizeof(AttachmentEntry);
  }
  return bytes;
}

size_t OutgoingBody::attachment_bytes() const {
  size_t bytes = 0;
  for (const Attachment& attachment : attachments) bytes += attachment.buffer.size();
  return bytes;
}

absl::Status SendBody(Endpoint& endpoint, FrameKind kind, uint32_t call_id, size_t header_bytes,
                      const OutgoingBody& body,
                      absl::FunctionRef<void(std::byte* frame)> write_fields,
                      uint64_t* bytes_copied) {
  if (body.SlotBytes(header_bytes) <= endpoint.slot_frame_bytes_max() &&
      SendInSlot(endpoint, kind, call_id, header_bytes, body, write_fields, bytes_copied)) {
    return absl::OkStatus();
  }
  absl::StatusOr<OutgoingFrame> frame =
      MakeLandingFrame(endpoint, kind, call_id, header_bytes, body, write_fields, bytes_copied);
  if (!frame.ok()) return frame.status();
  return endpoint.SendPayload(*std::move(frame));
}

absl::Status ReadBody(Endpoint& endpoint, IncomingFrame& frame, const Codec& codec, void* message,
                      AttachmentList* others, uint64_t* bytes_copied, std::span<std::byte> memory) {
  const bool has_landed = frame.has_landed();
  FrameBody body(frame.bytes, has_landed);
  Buffer copied;
  const size_t first =
      static_cast<size_t>(body.message().data() - frame.bytes.data()) + body.message().size();
  if (!has_landed && body.attachment_count() != 0 && first < frame.bytes.size()) {
    // The slot is used again: the attachments, which follow each other to its end, move at once.
    absl::StatusOr<Buffer> staging = endpoint.TakeStaging(frame.bytes.size() - first);
    if (!staging.ok()) return staging.status();
    copied = *std::move(staging);
    std::memcpy(copied.data(), frame.bytes.data() + first, copied.size());
    *bytes_copied += copied.size();
  }
  if (!ReadMessage(endpoint, frame, body.message(), codec, message, bytes_copied)) {
    return absl::InvalidArgumentError("not a message of the expected type");
  }
  for (uint32_t i = 0; i < body.attachment_count(); ++i) {
    size_t offset;
    uint32_t bytes, field;
    if (!body.NextAttachment(&offset, &bytes, &field)) {
      return absl::InvalidArgumentError("an attachment that is not inside of the message");
    }
    Buffer buffer;
    if (bytes != 0) {
      buffer = has_landed ? frame.landed.Slice(offset, bytes) : copied.Slice(offset - first, bytes);
    }
    if (bytes != 0 && bytes <= memory.size()) {
      std::memcpy(memory.data(), buffer.data(), bytes);
      *bytes_copied += bytes;
      buffer = Buffer::Wrap(memory.first(bytes));
      memory = memory.subspan(bytes);
    }
    if (field == 0) {
      others->push_back({std::move(buffer), 0});
    } else if (codec.place != nullptr) {
      codec.place(message, field, std::move(buffer));  // Of a field that we don't know: dropped.
    }
  }
  return absl::OkStatus();
}

}  // namespace verbena
