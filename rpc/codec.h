// SPDX-License-Identifier: Apache-2.0
//
// How a message type is turned into bytes and back: a table of functions per type, so that the
// calls know nothing of Protobuf or FlatBuffers. Constants with static storage; any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "verbena/rpc/attachment.h"

namespace verbena {

struct Codec {
  // Serialised size in bytes. May cache in the message what `write` needs, so a message that is
  // being sent must not be shared with another thread that sends or changes it.
  size_t (*byte_size)(const void* message);
  // Writes exactly `to.size()` bytes, which is what byte_size just returned.
  void (*write)(const void* message, std::span<std::byte> to);
  // Replaces `message` by what `from` says. False when `from` is not such a message.
  bool (*parse)(void* message, std::span<const std::byte> from);

  // Message objects that the server keeps and uses again, so that their memory is reused.
  void* (*create)();
  void (*destroy)(void* message);
  void (*clear)(void* message);

  // Of types with fields that travel outside of the message ([(verbena.placement) = PAYLOAD]); null
  // for others. `collect` appends them; `place` hands one that came to its field, and is false when
  // the type has no such field (any more).
  void (*collect)(const void* message, AttachmentList* attachments) = nullptr;
  bool (*place)(void* message, uint32_t field, Buffer buffer) = nullptr;

  // Of types whose objects are their bytes (FlatBuffers), which are then sent from where they were
  // built and read where they landed; null for others. Such a type has byte_size, write and parse,
  // too, for memory that the device does not know, and copies then.
  const Buffer* (*bytes)(const void* message) = nullptr;  // Empty: nothing was built.
  // As parse, but refers to `from`, which nobody changes any more.
  bool (*adopt)(void* message, Buffer from) = nullptr;
  size_t alignment = 1;  // Of bytes that may be adopted.
  // The bytes; the message is empty then, as after clear.
  Buffer (*take)(void* message) = nullptr;

  // What the status says of bytes that parse and adopt refuse, behind "the request of X ".
  const char* defect =
      "is not a message of the expected type: are both sides built from the same schema?";
};

}  // namespace verbena
