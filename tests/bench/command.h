// SPDX-License-Identifier: Apache-2.0
//
// Runs rpc_bench as a user does. For tests; one thread.

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace verbena::bench {

struct CommandResult {
  int exit_code = -1;  // -1: it was killed, or did not start.
  std::string out;
  std::string err;
};

// The program under test.
std::string RpcBench();
// Runs `argv` and waits; kills it after `timeout_s`, which only bounds a hang.
CommandResult RunCommand(const std::vector<std::string>& argv, int timeout_s = 60);

// A process in the background, killed at the end if it still runs.
class Background {
 public:
  explicit Background(const std::vector<std::string>& argv);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Waits for the first line of its standard output; empty when it ended without one.
  std::string FirstLine();
  // Sends the signal and waits; the exit code, or -1 when it was killed or did not end in 10 s.
  int EndWith(int signal);

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace verbena::bench
