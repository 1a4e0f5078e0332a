// SPDX-License-Identifier: Apache-2.0
//
// How a script and a program of the fault tests talk, by two files (faults.sh is the other end):
//
//   NAME.commands   the script appends lines, "COMMAND" or "COMMAND TIME"
//   NAME.status     the program replaces it several times a second: lines "KEY VALUE"
//
// Threads: one.

#pragma once

#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace verbena::faults {

using SteadyTime = std::chrono::steady_clock::time_point;

struct Command {
  std::string word;
  // When the script said so, by $EPOCHREALTIME; now without one.
  SteadyTime time;
};

class ScriptLink {
 public:
  // Creates both files if they are not there.
  explicit ScriptLink(const std::string& name);

  // The oldest command that was not taken yet.
  std::optional<Command> TakeCommand();

  template <class Value>
  void Set(const char* key, const Value& value) {
    lines_ << key << ' ' << value << '\n';
  }
  // The lines set since the last time become the status.
  void PublishStatus();

 private:
  const std::string status_file_;
  std::ifstream commands_;
  std::string partial_;  // A line that is being written.
  std::ostringstream lines_;
};

}  // namespace verbena::faults
