// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/shared_segment.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace verbena::bench {

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

absl::StatusOr<SharedSegment> SharedSegment::Create(size_t bytes) {
  UniqueFd fd(memfd_create("rpc_bench", MFD_CLOEXEC));
  if (!fd) return absl::ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("ftruncate to ", bytes, " bytes"));
  }
  return Open(std::move(fd), bytes);
}

absl::StatusOr<SharedSegment> SharedSegment::Open(UniqueFd fd, size_t bytes) {
  struct stat file;
  if (fstat(fd.get(), &file) != 0 || file.st_size != static_cast<off_t>(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("descriptor ", fd.get(), " is not a shared segment of ", bytes, " bytes"));
  }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat("mmap of ", bytes, " bytes"));
  }
  SharedSegment segment;
  segment.fd_ = std::move(fd);
  segment.data_ = data;
  segment.bytes_ = bytes;
  return segment;
}

}  // namespace verbena::bench
