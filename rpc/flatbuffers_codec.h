// SPDX-License-Identifier: Apache-2.0
//
// The Codec of a FlatBuffers table. What is received passes FlatBuffers' verifier once and is read
// in place from then on.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "flatbuffers/flatbuffers.h"
#include "verbena/rpc/codec.h"
#include "verbena/rpc/flat_message.h"

namespace verbena {

// What a table's schema says of its FlatBuffers beside their content.
struct FlatFormat {
  char identifier[5] = {};  // What a root of this type begins with (file_identifier). Empty: nothing.
  uint32_t alignment = 8;   // The largest of any field (force_align). Bytes.
};

// FlatBuffers' verifier. A buffer that refers to the same tables again and again could keep it busy
// for long: it looks at no more tables than the buffer has bytes.
template <class Table, FlatFormat format = FlatFormat{}>
bool VerifyFlatBuffer(std::span<const std::byte> bytes) {
  // Longer ones can't be FlatBuffers, and the verifier asserts that they aren't.
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) return false;
  flatbuffers::Verifier::Options options;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size());
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                 options);
  return verifier.VerifyBuffer<Table>(format.identifier[0] != '\0' ? format.identifier : nullptr);
}

template <class Table, FlatFormat format = FlatFormat{}>
inline constexpr Codec kFlatBuffersCodec = {
    .byte_size =
        [](const void* message) {
          return static_cast<const FlatMessage<Table>*>(message)->bytes().size();
        },
    .write =
        [](const void* message, std::span<std::byte> to) {
          const std::span<const std::byte> from =
              static_cast<const FlatMessage<Table>*>(message)->bytes();
          std::copy(from.begin(), from.end(), to.begin());
        },
    .parse =
        [](void* message, std::span<const std::byte> from) {
          auto* const flat = static_cast<FlatMessage<Table>*>(message);
          flat->CopyFrom(from);
          return VerifyFlatBuffer<Table, format>(flat->bytes());
        },
    .create = []() -> void* { return new FlatMessage<Table>; },
    .destroy = [](void* message) { delete static_cast<FlatMessage<Table>*>(message); },
    .clear = [](void* message) { static_cast<FlatMessage<Table>*>(message)->Clear(); },
    .bytes = [](const void* message) -> const Buffer* {
      return &static_cast<const FlatMessage<Table>*>(message)->buffer();
    },
    .adopt =
        [](void* message, Buffer from) {
          if (!VerifyFlatBuffer<Table, format>(from.span())) return false;
          static_cast<FlatMessage<Table>*>(message)->set_buffer(std::move(from));
          return true;
        },
    .alignment = format.alignment,
    .take = [](void* message) { return static_cast<FlatMessage<Table>*>(message)->TakeBuffer(); },
    .defect = format.identifier[0] != '\0'
                  ? "is not a valid FlatBuffer of its table with the file identifier of its schema: "
                    "is it finished with that, and are both sides built from the same schema?"
                  : "is not a valid FlatBuffer of its table: are both sides built from the same "
                    "schema?",
};

}  // namespace verbena
