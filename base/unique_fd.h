// SPDX-License-Identifier: Apache-2.0
//
// UniqueFd: owns a file descriptor and closes it. Movable, not copyable; -1 means "none".
//
// Threads: one at a time, as for an int.

#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace verbena {

class UniqueFd {
 public:
  UniqueFd() = default;

  // Takes over `fd`, which is an open descriptor or negative for none.
  explicit UniqueFd(int fd) : fd_(fd) {}

  ~UniqueFd() { Reset(); }

  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the descriptor up without closing it.
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }

  // Closes the descriptor, if there is one, and takes over `fd`. errno stays as it was, so that
  // an error path can return through destructors. An error of close() is dropped: Linux has
  // released the descriptor even then (close(2)), so trying again could close someone else's.
  void Reset(int fd = -1) {
    int old = std::exchange(fd_, fd);
    if (old < 0) return;
    int saved_errno = errno;
    close(old);
    errno = saved_errno;
  }

 private:
  int fd_ = -1;
};

}  // namespace verbena
