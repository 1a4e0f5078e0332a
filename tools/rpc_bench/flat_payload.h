// SPDX-License-Identifier: Apache-2.0
//
// The FlatBuffers that rpc_bench sends: tables with one vector.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "verbena/rpc/flat_message.h"

namespace verbena::bench {

// More than such a message has beside the vector's bytes.
inline constexpr size_t kFlatOverheadBytes = 256;

// A message with a vector of so many bytes, built in memory of `owner`: a Channel or a
// ServerContext. `create`: flatc's function for the table.
template <class Table, class Owner, class Create>
FlatMessage<Table> BuildPayload(Owner& owner, uint64_t bytes, Create create) {
  FlatMessageBuilder builder(owner, bytes + kFlatOverheadBytes);
  uint8_t* payload = nullptr;
  const auto vector = builder.CreateUninitializedVector<uint8_t>(bytes, &payload);
  std::memset(payload, 'v', bytes);
  builder.Finish(create(builder, vector));
  return builder.ReleaseMessage<Table>();
}

}  // namespace verbena::bench
