// SPDX-License-Identifier: Apache-2.0
//
// Shared memory of two processes, as a memfd: nothing appears in /dev/shm, and it is gone when both
// are. Lifetime: the object's, in each process. Threads: as the memory is used.

#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "verbena/base/unique_fd.h"

namespace verbena::bench {

class SharedSegment {
 public:
  SharedSegment() = default;
  ~SharedSegment();
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&&) = delete;

  // Zeroed, all pages present. Errors: those of memfd_create(2), ftruncate(2) and mmap(2).
  static absl::StatusOr<SharedSegment> Create(size_t bytes);
  // Maps the segment that another process created; takes over the descriptor.
  static absl::StatusOr<SharedSegment> Open(UniqueFd fd, size_t bytes);

  void* data() const { return data_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace verbena::bench
