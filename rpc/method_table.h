// SPDX-License-Identifier: Apache-2.0
//
// The methods that a server serves, found by their identity on the wire. Built once, then read
// from any thread.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/rpc/service.h"

namespace verbena {

struct MethodEntry {
  uint64_t id = 0;
  const MethodDescriptor* descriptor = nullptr;  // Null: a free place.
  Service* service = nullptr;
  Service::Handler handler = nullptr;
  uint32_t index = 0;  // 0 .. size() - 1, for tables beside this one.
};

class MethodTable {
 public:
  // Errors: INVALID_ARGUMENT (no service), ALREADY_EXISTS (a method twice, or two names with one
  // identity; names both).
  static absl::StatusOr<MethodTable> Build(std::span<Service* const> services);

  const MethodEntry* Find(uint64_t id) const {
    for (size_t at = id & mask_;; at = (at + 1) & mask_) {
      const MethodEntry& entry = entries_[at];
      if (entry.descriptor == nullptr) return nullptr;
      if (entry.id == id) return &entry;
    }
  }
  uint32_t size() const { return size_; }

 private:
  // Open addressing, at most half full, so that a miss ends.
  std::vector<MethodEntry> entries_;
  size_t mask_ = 0;
  uint32_t size_ = 0;
};

}  // namespace verbena
