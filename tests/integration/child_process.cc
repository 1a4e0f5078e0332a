// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/integration/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "glog/logging.h"

extern char** environ;

namespace verbena {
namespace {

std::array<UniqueFd, 2> MakePipe() {
  int fds[2];
  PCHECK(pipe2(fds, O_CLOEXEC) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  auto [child_input, to_child] = MakePipe();
  auto [from_child, child_output] = MakePipe();
  to_child_ = std::move(to_child);
  from_child_ = std::move(from_child);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_output.get(), STDOUT_FILENO);
  std::vector<char*> argv;
  std::string self = "/proc/self/exe";
  argv.push_back(self.data());
  std::vector<std::string> kept = arguments;
  for (std::string& argument : kept) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int error = posix_spawn(&pid_, self.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  CHECK_EQ(error, 0) << "posix_spawn";
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) Kill();
}

void ChildProcess::AwaitReady() {
  pollfd fd{from_child_.get(), POLLIN, 0};
  char byte;
  if (poll(&fd, 1, 20'000) <= 0 || read(from_child_.get(), &byte, 1) != 1) {
    throw std::runtime_error("the child process did not become ready");
  }
}

void ChildProcess::Signal(int signal) { PCHECK(kill(pid_, signal) == 0); }

void ChildProcess::Stop() {
  Signal(SIGSTOP);
  int status;
  PCHECK(waitpid(pid_, &status, WUNTRACED) == pid_);
  CHECK(WIFSTOPPED(status));
}

void ChildProcess::Kill() {
  Signal(SIGKILL);
  int status;
  Reap(&status);
}

int ChildProcess::End() {
  to_child_ = UniqueFd();
  int status;
  Reap(&status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void ChildProcess::Reap(int* status) {
  PCHECK(waitpid(pid_, status, 0) == pid_);
  pid_ = -1;
}

void TellReady() { PCHECK(write(STDOUT_FILENO, "!", 1) == 1); }

void AwaitEnd() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace verbena
