// SPDX-License-Identifier: Apache-2.0
//
// What travels with a message and outside of it. Values; threads as Buffer.

#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "verbena/transport/buffer.h"

namespace verbena {

struct Attachment {
  Buffer buffer;
  // The number of the message's field that it is, or 0: one that the caller or handler attached.
  uint32_t field = 0;
};

// Four without an allocation.
using AttachmentList = absl::InlinedVector<Attachment, 4>;

}  // namespace verbena
