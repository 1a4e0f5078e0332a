// SPDX-License-Identifier: Apache-2.0
//
// Where messages are built that are sent from where they are.

#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "verbena/transport/buffer.h"

namespace verbena {

// Threads: any.
class MessageMemory {
 public:
  // All of a block of at least `bytes`, of undefined content, registered for the connection that
  // there is now. Fast when such memory was used before. Errors: UNAVAILABLE (no connection),
  // RESOURCE_EXHAUSTED naming the budget.
  virtual absl::StatusOr<Buffer> TakeMessageMemory(size_t bytes) = 0;
  // BufferBlock::domain_id of such blocks; 0: there is no connection.
  virtual uint64_t message_domain_id() const = 0;

 protected:
  ~MessageMemory() = default;
};

}  // namespace verbena
