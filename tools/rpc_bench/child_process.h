// SPDX-License-Identifier: Apache-2.0
//
// A second process of this very program: started by exec and never by fork alone, so that it may
// be started while devices are open.
//
// Lifetime: destroying it ends the process. Threads: one at a time; start it from a thread that
// outlives it, because the child is told to end when that thread ends.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/base/unique_fd.h"

namespace verbena::bench {

class ChildProcess {
 public:
  // The descriptor under which the child finds `inherited_fd`.
  static constexpr int kInheritedFd = 3;

  ChildProcess() = default;
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  // Runs this program with `args` (its name is added, and --owner_pid), standard output going to
  // ReadLine(). `inherited_fd` of -1 is none.
  static absl::StatusOr<ChildProcess> StartSelf(std::vector<std::string> args,
                                                int inherited_fd = -1);

  // The next line of its standard output, without the newline. Errors: DEADLINE_EXCEEDED;
  // UNAVAILABLE when it ended without one.
  absl::StatusOr<std::string> ReadLine(std::chrono::milliseconds timeout);

  bool IsRunning();
  pid_t pid() const { return pid_; }

  // Asks it to end, and makes it end after `grace`. Idempotent.
  void Stop(std::chrono::milliseconds grace = std::chrono::milliseconds(3000));

 private:
  bool Reap(int options);

  pid_t pid_ = -1;  // -1: none, or reaped.
  UniqueFd output_;
  std::string unread_;
};

// For the child: ends this process by SIGTERM when the process `owner_pid` ends, even by SIGKILL.
// Errors: CANCELLED when it has ended already.
absl::Status EndWithOwner(pid_t owner_pid);

}  // namespace verbena::bench
