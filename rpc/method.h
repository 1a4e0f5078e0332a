// SPDX-License-Identifier: Apache-2.0
//
// What both sides know of a method. Constants with static storage in generated code; any thread.

#pragma once

#include <cstdint>
#include <string_view>

#include "verbena/rpc/codec.h"

namespace verbena {

// The identity of a method on the wire: 64-bit FNV-1a of "package.Service/Method" (RFC draft
// "The FNV Non-Cryptographic Hash Algorithm", section 2). Registration refuses two methods of one
// server with the same value.
constexpr uint64_t MethodId(std::string_view full_name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : full_name) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

struct MethodDescriptor {
  constexpr MethodDescriptor(std::string_view name, const Codec* request_codec,
                             const Codec* response_codec)
      : full_name(name), id(MethodId(name)), request(request_codec), response(response_codec) {}

  std::string_view full_name;  // "package.Service/Method"; the package may be empty.
  uint64_t id;
  const Codec* request;
  const Codec* response;
};

}  // namespace verbena
