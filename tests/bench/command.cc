// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/bench/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace verbena::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Starts argv with standard output and error (unless err is -1) going to these descriptors.
pid_t Start(std::vector<std::string> argv, int out, int err) {
  std::vector<char*> pointers;
  for (std::string& arg : argv) pointers.push_back(arg.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (err >= 0) posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  if (posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

// Reads both until both end.
void ReadAll(int out, int err, CommandResult* result) {
  pollfd waited[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&result->out, &result->err};
  for (int open = 2; open > 0;) {
    poll(waited, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (waited[i].fd < 0 || waited[i].revents == 0) continue;
      char buffer[4096];
      ssize_t bytes = read(waited[i].fd, buffer, sizeof(buffer));
      if (bytes > 0) {
        texts[i]->append(buffer, static_cast<size_t>(bytes));
      } else {
        waited[i].fd = -1;
        --open;
      }
    }
  }
}

int ExitCodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

}  // namespace

std::string RpcBench() {
  const char* path = std::getenv("RPC_BENCH");
  return path == nullptr ? "rpc_bench" : path;
}

CommandResult RunCommand(const std::vector<std::string>& argv, int timeout_s) {
  CommandResult result;
  std::vector<std::string> bounded = {"timeout", "--kill-after=5", std::to_string(timeout_s)};
  bounded.insert(bounded.end(), argv.begin(), argv.end());
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return result;
  pid_t pid = Start(bounded, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  if (pid > 0) ReadAll(out[0], err[0], &result);
  close(out[0]);
  close(err[0]);
  int status = 0;
  if (pid > 0 && waitpid(pid, &status, 0) == pid) result.exit_code = ExitCodeOf(status);
  return result;
}

Background::Background(const std::vector<std::string>& argv) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return;
  pid_ = Start(argv, out[1], -1);
  close(out[1]);
  out_ = out[0];
}

Background::~Background() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
}

std::string Background::FirstLine() {
  std::string line;
  char letter;
  while (read(out_, &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

int Background::EndWith(int signal) {
  kill(pid_, signal);
  const auto bound = Clock::now() + std::chrono::seconds(10);
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > bound) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  pid_ = -1;
  return ExitCodeOf(status);
}

}  // namespace verbena::bench
