// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace verbena::bench {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::StartSelf(std::vector<std::string> args,
                                                     int inherited_fd) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  UniqueFd read_end(ends[0]), write_end(ends[1]);

  args.insert(args.begin(), "rpc_bench");
  args.push_back(absl::StrCat("--owner_pid=", getpid()));
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  if (inherited_fd >= 0) posix_spawn_file_actions_adddup2(&actions, inherited_fd, kInheritedFd);
  ChildProcess child;
  int error = posix_spawn(&child.pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    child.pid_ = -1;
    return absl::ErrnoToStatus(error, "starting a second process of this program");
  }
  child.output_ = std::move(read_end);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      unread_(std::move(other.unread_)) {}

ChildProcess::~ChildProcess() { Stop(); }

absl::StatusOr<std::string> ChildProcess::ReadLine(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    size_t newline = unread_.find('\n');
    if (newline != std::string::npos) {
      std::string line = unread_.substr(0, newline);
      unread_.erase(0, newline + 1);
      return line;
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waited = {output_.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&waited, 1, static_cast<int>(left.count())) == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("process ", pid_, " said nothing for ", timeout.count(), " ms"));
    }
    char buffer[512];
    ssize_t bytes = read(output_.get(), buffer, sizeof(buffer));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      return absl::UnavailableError(
          absl::StrCat("process ", pid_, " ended; what it printed above says why"));
    }
    unread_.append(buffer, static_cast<size_t>(bytes));
  }
}

bool ChildProcess::Reap(int options) {
  if (pid_ < 0) return true;
  pid_t reaped;
  do {
    reaped = waitpid(pid_, nullptr, options);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == 0) return false;
  pid_ = -1;
  return true;
}

bool ChildProcess::IsRunning() { return !Reap(WNOHANG); }

void ChildProcess::Stop(std::chrono::milliseconds grace) {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  const auto deadline = Clock::now() + grace;
  while (!Reap(WNOHANG)) {
    if (Clock::now() >= deadline) {
      kill(pid_, SIGKILL);
      Reap(0);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

absl::Status EndWithOwner(pid_t owner_pid) {
  if (owner_pid <= 0) return absl::OkStatus();
  prctl(PR_SET_NAME, "rpc_bench");  // It was started as /proc/self/exe, so ps would show "exe".
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return absl::ErrnoToStatus(errno, "prctl");
  // It may have ended before the line above; then no signal comes.
  if (getppid() != owner_pid)
    return absl::CancelledError("the process that started this one ended");
  return absl::OkStatus();
}

}  // namespace verbena::bench
