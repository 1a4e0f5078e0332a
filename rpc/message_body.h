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

  // What the message can't be sent for: over Protobuf's limit, an attachment over 4 GiB, too many.
  absl::Status Check() const;
  uint8_t flags() const;
  // Bytes between the header and the message.
  size_t prologue_bytes() const;
  size_t attachment_bytes() const;
  // Bytes of a frame in a slot.
  size_t SlotBytes(size_t header_bytes) const {
    return header_bytes + prologue_bytes() + message_bytes + attachment_bytes();
  }
};

// Sends a request or response: in a slot, which copies the attachments and counts that in
// `*bytes_copied`, if it is short enough and there is room, else by RDMA WRITE. `write_fields`
// fills the header of the frame that it is given, behind the FrameHeader. Errors:
// RESOURCE_EXHAUSTED; nothing is sent then.
absl::Status SendBody(Endpoint& endpoint, FrameKind kind, uint32_t call_id, size_t header_bytes,
                      const OutgoingBody& body,
                      absl::FunctionRef<void(std::byte* frame)> write_fields,
                      uint64_t* bytes_copied);
// Bytes of a zone that takes a response whose message and attachments have so many bytes in all, if
// there are not many of them.
inline uint64_t ZoneBytesFor(uint64_t response_bytes) { return response_bytes + 1024; }

// Reads a body that came: parses `message`, gives its fields their attachments and `others` the
// rest. `landed`: the memory that `frame` is in, when it came by RDMA WRITE; attachments refer to
// it. Those that came in a slot are copied, which `*bytes_copied` counts; so are those that fit
// into `memory`, one behind the other, and refer to it then. Errors: INVALID_ARGUMENT (no message
// of this type), RESOURCE_EXHAUSTED.
absl::Status ReadBody(Endpoint& endpoint, std::span<const std::byte> frame, const Buffer* landed,
                      const Codec& codec, void* message, AttachmentList* others,
                      uint64_t* bytes_copied, std::span<std::byte> memory = {});

}  // namespace verbena
