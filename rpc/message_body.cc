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

// Puts a frame together that goes by RDMA WRITE: prefix, FrameHeader, prologue and message in new
// registered memory, and references to the attachments.
absl::StatusOr<OutgoingFrame> MakeLandingFrame(Endpoint& endpoint, FrameKind kind, uint32_t call_id,
                                               size_t header_bytes, const OutgoingBody& body) {
  if (absl::Status status = body.Check(); !status.ok()) return status;
  const size_t head_bytes = header_bytes + body.prologue_bytes() + body.message_bytes;
  absl::StatusOr<Buffer> head = endpoint.TakeStaging(sizeof(LandingPrefix) + head_bytes);
  if (!head.ok()) return head.status();
  OutgoingFrame frame;
  frame.call_id = call_id;
  size_t end = head_bytes;
  for (const Attachment& attachment : body.attachments) {
    if (attachment.buffer.empty()) continue;
    end = NextAttachmentAt(end) + attachment.buffer.size();
    frame.attachments.push_back(attachment.buffer);
  }
  const LandingPrefix prefix = {.frame_bytes = end};
  std::memcpy(head->data(), &prefix, sizeof(prefix));
  std::byte* const at = head->data() + sizeof(prefix);
  WriteFrameHeader(at, kind, body.flags(), /*credits=*/0, call_id);
  std::byte* const message = WritePrologue(body, at + header_bytes);
  body.codec->write(body.message, {message, body.message_bytes});
  frame.head = *std::move(head);
  frame.landing_bytes = sizeof(prefix) + end;
  return frame;
}

}  // namespace

absl::Status OutgoingBody::Check() const {
  constexpr size_t kMessageBytesMax = std::numeric_limits<int32_t>::max();
  if (message_bytes > kMessageBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the message has ", message_bytes, " bytes, and Protobuf's limit is ",
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
  const size_t bytes = body.SlotBytes(header_bytes);
  std::byte* const slot =
      bytes <= endpoint.slot_frame_bytes_max() ? endpoint.Reserve(bytes) : nullptr;
  if (slot != nullptr) {
    write_fields(slot);
    WriteSlotBody(body, slot + header_bytes);
    *bytes_copied += body.attachment_bytes();
    endpoint.Commit(kind, call_id, body.flags());
    return absl::OkStatus();
  }
  absl::StatusOr<OutgoingFrame> frame =
      MakeLandingFrame(endpoint, kind, call_id, header_bytes, body);
  if (!frame.ok()) return frame.status();
  write_fields(frame->head.data() + sizeof(LandingPrefix));
  return endpoint.SendPayload(*std::move(frame));
}

absl::Status ReadBody(Endpoint& endpoint, std::span<const std::byte> frame, const Buffer* landed,
                      const Codec& codec, void* message, AttachmentList* others,
                      uint64_t* bytes_copied, std::span<std::byte> memory) {
  FrameBody body(frame, landed != nullptr);
  if (!codec.parse(message, body.message())) {
    return absl::InvalidArgumentError("not a message of the expected type");
  }
  Buffer copied;
  const size_t first =
      static_cast<size_t>(body.message().data() - frame.data()) + body.message().size();
  if (landed == nullptr && body.attachment_count() != 0 && first < frame.size()) {
    // The slot is used again: the attachments, which follow each other to its end, move at once.
    absl::StatusOr<Buffer> memory = endpoint.TakeStaging(frame.size() - first);
    if (!memory.ok()) return memory.status();
    copied = *std::move(memory);
    std::memcpy(copied.data(), frame.data() + first, copied.size());
    *bytes_copied += copied.size();
  }
  for (uint32_t i = 0; i < body.attachment_count(); ++i) {
    size_t offset;
    uint32_t bytes, field;
    if (!body.NextAttachment(&offset, &bytes, &field)) {
      return absl::InvalidArgumentError("an attachment that is not inside of the message");
    }
    Buffer buffer;
    if (bytes != 0) {
      buffer =
          landed != nullptr ? landed->Slice(offset, bytes) : copied.Slice(offset - first, bytes);
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
