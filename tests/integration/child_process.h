// SPDX-License-Identifier: Apache-2.0
//
// This test binary started once more, in a role of its own: main() looks at the first argument. The
// child dies with its parent.
//
// Threads: one.

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "verbena/base/unique_fd.h"

namespace verbena {

class ChildProcess {
 public:
  // Runs /proc/self/exe with these arguments.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  // Kills and reaps it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits until the child has called TellReady; throws after a bound.
  void AwaitReady();
  void Signal(int signal);
  // SIGSTOP, and waits until every thread of it stands still.
  void Stop();
  // SIGKILL, and waits until the kernel has taken it down.
  void Kill();
  // Closes its standard input, upon which it shall end; its exit code.
  int End();

 private:
  void Reap(int* status);

  pid_t pid_ = -1;
  UniqueFd to_child_;
  UniqueFd from_child_;
};

// In the child: says one more time that it is ready.
void TellReady();
// In the child: returns when the parent calls End.
void AwaitEnd();

}  // namespace verbena
