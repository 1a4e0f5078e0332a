// SPDX-License-Identifier: Apache-2.0
//
// The Codec of a Protobuf message type. Serialises straight into the registered send slot and
// parses straight out of the receive slot; neither makes a copy of its own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "google/protobuf/message_lite.h"
#include "verbena/rpc/codec.h"

namespace verbena {

// `Message` is a generated class (final), so the calls below are direct.
template <class Message>
inline constexpr Codec kProtobufCodec = {
    .byte_size =
        [](const void* message) { return static_cast<const Message*>(message)->ByteSizeLong(); },
    .write =
        [](const void* message, std::span<std::byte> to) {
          static_cast<const Message*>(message)->SerializeWithCachedSizesToArray(
              reinterpret_cast<uint8_t*>(to.data()));
        },
    .parse =
        [](void* message, std::span<const std::byte> from) {
          return static_cast<Message*>(message)->ParseFromArray(from.data(),
                                                                static_cast<int>(from.size()));
        },
    .create = []() -> void* { return new Message; },
    .destroy = [](void* message) { delete static_cast<Message*>(message); },
    .clear = [](void* message) { static_cast<Message*>(message)->Clear(); },
};

// Of a generated class that holds a Protobuf message and, as Buffers, those of its fields that travel
// outside of it.
template <class Placed>
inline constexpr Codec kPlacedProtobufCodec = {
    .byte_size =
        [](const void* message) {
          return static_cast<const Placed*>(message)->message().ByteSizeLong();
        },
    .write =
        [](const void* message, std::span<std::byte> to) {
          static_cast<const Placed*>(message)->message().SerializeWithCachedSizesToArray(
              reinterpret_cast<uint8_t*>(to.data()));
        },
    .parse =
        [](void* message, std::span<const std::byte> from) {
          static_cast<Placed*>(message)->Clear();
          return static_cast<Placed*>(message)->mutable_message()->ParseFromArray(
              from.data(), static_cast<int>(from.size()));
        },
    .create = []() -> void* { return new Placed; },
    .destroy = [](void* message) { delete static_cast<Placed*>(message); },
    .clear = [](void* message) { static_cast<Placed*>(message)->Clear(); },
    .collect =
        [](const void* message, AttachmentList* attachments) {
          static_cast<const Placed*>(message)->VerbenaCollect(attachments);
        },
    .place =
        [](void* message, uint32_t field, Buffer buffer) {
          return static_cast<Placed*>(message)->VerbenaPlace(field, std::move(buffer));
        },
};

}  // namespace verbena
