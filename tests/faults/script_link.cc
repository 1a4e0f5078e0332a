// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/faults/script_link.h"

#include <cstdio>
#include <utility>

#include "glog/logging.h"

namespace verbena::faults {
namespace {

SteadyTime ToSteady(double epoch_seconds) {
  using std::chrono::duration;
  const duration<double> ago =
      std::chrono::system_clock::now().time_since_epoch() - duration<double>(epoch_seconds);
  return std::chrono::steady_clock::now() -
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(ago);
}

}  // namespace

ScriptLink::ScriptLink(const std::string& name) : status_file_(name + ".status") {
  const std::string commands = name + ".commands";
  std::ofstream(commands, std::ios::app);
  commands_.open(commands);
  CHECK(commands_.is_open()) << commands;
  PublishStatus();
}

std::optional<Command> ScriptLink::TakeCommand() {
  commands_.clear();  // The end of the file moves.
  std::string piece;
  std::getline(commands_, piece);
  partial_ += piece;
  if (commands_.eof()) return std::nullopt;
  std::istringstream line(std::exchange(partial_, ""));
  Command command{.word = "", .time = std::chrono::steady_clock::now()};
  double epoch_seconds;
  line >> command.word;
  if (line >> epoch_seconds) command.time = ToSteady(epoch_seconds);
  return command;
}

void ScriptLink::PublishStatus() {
  const std::string fresh = status_file_ + ".new";
  {
    std::ofstream file(fresh, std::ios::trunc);
    file << lines_.str();
    CHECK(file.flush()) << fresh;
  }
  PCHECK(std::rename(fresh.c_str(), status_file_.c_str()) == 0);
  lines_.str("");
}

}  // namespace verbena::faults
