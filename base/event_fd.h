// SPDX-License-Identifier: Apache-2.0
//
// Event descriptors: how one thread wakes another that waits for descriptors.
//
// Threads: any. Source: eventfd(2).

#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "verbena/base/unique_fd.h"

namespace verbena {

// Non-blocking, closed by exec. Invalid, with errno set, when there are no descriptors left.
inline UniqueFd MakeEventFd() { return UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

// Makes it readable until ClearEventFd. False, with errno set, when it is no event descriptor; a
// counter that is full is as good.
inline bool SignalEventFd(int fd) {
  const uint64_t one = 1;
  return write(fd, &one, sizeof(one)) >= 0 || errno == EAGAIN;
}

// False, with errno set, when it is no event descriptor; one that was not readable is as good.
inline bool ClearEventFd(int fd) {
  uint64_t count;
  return read(fd, &count, sizeof(count)) >= 0 || errno == EAGAIN;
}

}  // namespace verbena
