// SPDX-License-Identifier: Apache-2.0
//
// Owned descriptors and mappings, and sealed memory: memfds whose size can never change, so that
// no peer can make an access to a mapping of ours end in SIGBUS. Nothing ever has a name in a file
// system, hence nothing is left behind by a killed process.
//
// Any thread. Source: memfd_create(2), fcntl(2) "File Sealing".

#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/base/unique_fd.h"

namespace verbena::soft {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() { Unmap(); }

  // Private zeroed memory, touched on use.
  static absl::StatusOr<Mapping> Anonymous(size_t bytes);
  // Shared. `populate` fills the page tables now.
  static absl::StatusOr<Mapping> Shared(int fd, size_t bytes, bool writable, bool populate = false);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  void Unmap();

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

struct SealedMemory {
  UniqueFd fd;
  Mapping mapping;  // For reading and writing.
};

// Creates sealed memory of `bytes`, zeroed. Without `peers_may_write` no further writable mapping
// can be made of it. `name` is only seen in /proc.
// Errors: UNAVAILABLE (the kernel lacks it), RESOURCE_EXHAUSTED.
absl::StatusOr<SealedMemory> CreateSealedMemory(const char* name, size_t bytes,
                                                bool peers_may_write);

// Whether a descriptor that a peer sent is sealed memory of at least `bytes`.
// Errors: INVALID_ARGUMENT.
absl::Status CheckSealedMemory(int fd, size_t bytes);

// A non-blocking eventfd. Errors: RESOURCE_EXHAUSTED.
absl::StatusOr<UniqueFd> CreateEvent();

// Whether a descriptor that a peer sent can be an eventfd; a pipe or socket could block us or
// raise SIGPIPE. Errors: INVALID_ARGUMENT.
absl::Status CheckEvent(int fd);

// Adds one to an eventfd; a full counter is as good.
void SignalEvent(int fd);
// Resets it.
void ClearEvent(int fd);

}  // namespace verbena::soft
