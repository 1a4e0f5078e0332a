// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/base/event_fd.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3.
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1.
#endif

namespace verbena::soft {
namespace {

absl::Status Exhausted(absl::string_view what, size_t bytes, int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      what, " of ", bytes, " bytes failed: ", strerror(error),
      error == EMFILE || error == ENFILE ? ". Raise the limit of open files (ulimit -n)."
                                         : ". Look at the memory limit and vm.max_map_count."));
}

}  // namespace

absl::StatusOr<Mapping> Mapping::Anonymous(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return Exhausted("Private memory", bytes, errno);
  Mapping mapping;
  mapping.data_ = static_cast<std::byte*>(data);
  mapping.size_ = bytes;
  return mapping;
}

absl::StatusOr<Mapping> Mapping::Shared(int fd, size_t bytes, bool writable, bool populate) {
  void* data = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                    MAP_SHARED | MAP_NORESERVE | (populate ? MAP_POPULATE : 0), fd, 0);
  if (data == MAP_FAILED) return Exhausted("Mapping shared memory", bytes, errno);
  Mapping mapping;
  mapping.data_ = static_cast<std::byte*>(data);
  mapping.size_ = bytes;
  return mapping;
}

void Mapping::Unmap() {
  if (data_ != nullptr) PCHECK(munmap(data_, size_) == 0) << size_;
  data_ = nullptr;
  size_ = 0;
}

absl::StatusOr<SealedMemory> CreateSealedMemory(const char* name, size_t bytes,
                                                bool peers_may_write) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 && (errno == ENOSYS || errno == EINVAL)) {
    return absl::UnavailableError("this kernel has no memfd_create(2) with sealing");
  }
  if (fd < 0) return Exhausted("memfd_create(2)", bytes, errno);
  SealedMemory memory;
  memory.fd = UniqueFd(fd);
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return Exhausted("Memory", bytes, errno);
  absl::StatusOr<Mapping> mapping = Mapping::Shared(fd, bytes, /*writable=*/true);
  if (!mapping.ok()) return mapping.status();
  memory.mapping = *std::move(mapping);
  // Order: F_SEAL_FUTURE_WRITE after our own mapping, F_SEAL_SEAL last.
  if (!peers_may_write && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) {
    return absl::UnavailableError("this kernel has no F_SEAL_FUTURE_WRITE; Linux 5.1 brought it");
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::UnavailableError(absl::StrCat("memfd sealing failed: ", strerror(errno)));
  }
  return memory;
}

absl::Status CheckSealedMemory(int fd, size_t bytes) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("the peer's memory is not sealed against shrinking");
  }
  struct statfs file_system;
  // Huge pages can run out, which is a SIGBUS for whoever touches the next one.
  if (fstatfs(fd, &file_system) != 0 || file_system.f_type != TMPFS_MAGIC) {
    return absl::InvalidArgumentError("the peer's memory is not an ordinary memfd");
  }
  struct stat file;
  if (fstat(fd, &file) != 0 || file.st_size < 0 || static_cast<size_t>(file.st_size) < bytes) {
    return absl::InvalidArgumentError("the peer's memory is shorter than it says");
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CreateEvent() {
  UniqueFd fd = MakeEventFd();
  if (!fd) return Exhausted("eventfd(2)", 0, errno);
  return fd;
}

absl::Status CheckEvent(int fd) {
  struct stat file;
  // An anonymous inode has no file type.
  if (fstat(fd, &file) != 0 || (file.st_mode & S_IFMT) != 0) {
    return absl::InvalidArgumentError("the peer's wake-up descriptor is not an eventfd");
  }
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::InvalidArgumentError("the peer's wake-up descriptor cannot be non-blocking");
  }
  return absl::OkStatus();
}

void SignalEvent(int fd) {
  if (!SignalEventFd(fd)) {
    PLOG_EVERY_N(WARNING, 1000) << "eventfd write";
  }
}

void ClearEvent(int fd) {
  if (!ClearEventFd(fd)) PLOG(WARNING) << "eventfd read";
}

}  // namespace verbena::soft
