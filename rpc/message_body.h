// SPDX-License-Identifier: Apache-2.0
//
// The body of a request or response on its way out and in: the message, its attachments, and where
// they are in a slot or in a zone (docs/wire_protocol.md, section 3). The only code that lays it
// out.
//
// Threads: the poller's.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "verbena/rpc/attachment.h"
#include "verbena/rpc/codec.h"
#include "verbena/transport/endpoint.h"

namespace verbena {

// A body that is going to be sent. Values that live as long as the call that sends it.
struct OutgoingBody {
  const Codec* codec = nullptr;
  const void* message = nullptr;
  size_t message_bytes = 0;  // As codec->byte_size just said.
  AttachmentList attachments;
  std::optional<ZoneGrant> reply_zone;

  // What the message can't be sent for: over 2 GiB, an attachment over 4 GiB, too many.
  absl::Status Check() const;
  uint8_t flags() const;
  // Bytes between the header and the message.
  size_t prologue_bytes() const;
  size_t attachment_bytes() const;
  // Where the message is, if it is its bytes; or null.
  const Buffer* bytes_in_place() const {
    return codec->bytes != nullptr ? codec->bytes(message) : nullptr;
  }
  // Bytes of a frame in a slot.
  size_t SlotBytes(size_t header_bytes) const {
    return header_bytes + prologue_bytes() + message_bytes + attachment_bytes();
  }
};

// Sends a request or response: in a slot, which copies the attachments and counts that in
// `*bytes_copied`, if it is short enough and there is room, else by RDMA WRITE. Where the message is
// its bytes it is not copied, but beside attachments in a slot. `write_fields` fills the header of
// the frame that it is given, behind the FrameHeader. Errors: RESOURCE_EXHAUSTED; nothing is sent
// then.
absl::Status SendBody(Endpoint& endpoint, FrameKind kind, uint32_t call_id, size_t header_bytes,
                      const OutgoingBody& body,
                      absl::FunctionRef<void(std::byte* frame)> write_fields,
                      uint64_t* bytes_copied);
// Bytes of a zone that takes a response whose message and attachments have so many bytes in all, if
// there are not many of them.
inline uint64_t ZoneBytesFor(uint64_t response_bytes) { return response_bytes + 1024; }

// Sends one whose message has nothing behind it and fits in a slot. `write_fields` fills
// `header_bytes`. False when there is no room now; nothing is sent then.
template <class WriteFields>
bool SendShort(Endpoint& endpoint, FrameKind kind, uint32_t call_id, size_t header_bytes,
               const Codec& codec, const void* message, size_t message_bytes,
               WriteFields write_fields, uint64_t* bytes_copied, uint8_t flags = 0) {
  if (codec.bytes != nullptr) {
    const Buffer& bytes = *codec.bytes(message);
    if (endpoint.CanSendFrom(bytes, header_bytes)) [[likely]] {
      std::byte* const frame = endpoint.ReserveBefore(bytes, header_bytes);
      if (frame == nullptr) return false;
      write_fields(frame);
      endpoint.CommitBefore(bytes, kind, call_id, flags);
      return true;
    }
  }
  std::byte* const frame = endpoint.Reserve(header_bytes + message_bytes);
  if (frame == nullptr) return false;
  write_fields(frame);
  codec.write(message, {frame + header_bytes, message_bytes});
  if (codec.bytes != nullptr) *bytes_copied += message_bytes;
  endpoint.Commit(kind, call_id, flags);
  return true;
}

// A request or response that came.
struct IncomingFrame {
  static constexpr uint32_t kNoSlot = 0xffffffff;
  std::span<const std::byte> bytes;
  uint32_t slot = kNoSlot;  // Where it is, or
  Buffer landed;            // what it is in, when it came by RDMA WRITE.
  // Set when the slot was lent to its reader: it is not the handler's to release any more.
  bool lent = false;

  bool has_landed() const { return landed.block() != nullptr; }
  uint8_t flags() const { return reinterpret_cast<const FrameHeader*>(bytes.data())->flags; }
};

// Reads a message alone: `bytes`, a part of `frame`. False when it is no such message.
inline bool ReadMessage(Endpoint& endpoint, IncomingFrame& frame, std::span<const std::byte> bytes,
                        const Codec& codec, void* message, uint64_t* bytes_copied) {
  if (codec.adopt == nullptr) return codec.parse(message, bytes);
  Buffer whole;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % codec.alignment == 0) [[likely]] {
    whole = frame.has_landed() ? frame.landed
                               : endpoint.LendReceive(frame.slot, frame.bytes.size());
  }
  if (whole.block() == nullptr) [[unlikely]] {
    *bytes_copied += bytes.size();
    return codec.parse(message, bytes);
  }
  if (!frame.has_landed()) frame.lent = true;
  const auto offset = static_cast<size_t>(bytes.data() - whole.data());
  return codec.adopt(message, std::move(whole).Slice(offset, bytes.size()));
}

// Reads a body that came: its message, whose fields get their attachments; `others` gets the rest.
// Those that landed refer to that memory. Those that came in a slot are copied, which
// `*bytes_copied` counts; so are those that fit into `memory`, one behind the other, and refer to it
// then. Errors: INVALID_ARGUMENT (no message of this type), RESOURCE_EXHAUSTED.
absl::Status ReadBody(Endpoint& endpoint, IncomingFrame& frame, const Codec& codec, void* message,
                      AttachmentList* others, uint64_t* bytes_copied,
                      std::span<std::byte> memory = {});

}  // namespace verbena
