// SPDX-License-Identifier: Apache-2.0
//
// The data path makes no system call while it polls: the thread that runs it here is killed by the
// kernel at its first one (seccomp(2)).

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "glog/logging.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/unit/transport/soft/end.h"

namespace verbena::soft {
namespace {

constexpr int kRoundTrips = 20'000;

// For this thread and for ever: everything but the end of the process.
void ForbidSystemCalls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{std::size(filter), filter};
  PCHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  PCHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

// One message of each kind there and back; large ones are copied to the receive itself.
void RunRoundTrips(End& end, int count, bool first) {
  WorkCompletion completion;
  for (int i = 0; i < count; ++i) {
    const uint32_t bytes = i % 4 == 3 ? 4000 : 64;
    if (first) end.Send(1, 8192, bytes, 0);
    for (;;) {
      if (end.queue->Poll({&completion, 1}) == 0) continue;
      if (completion.opcode == CompletionOpcode::kRecv) break;
    }
    CHECK(completion.status == CompletionStatus::kSuccess);
    end.PostRecv(1, 0, 4096);
    if (!first) end.Send(1, 8192, bytes, i % 16 == 0 ? kSendSignaled : 0);
  }
}

int RunSide(const std::string& name, bool server) {
  End end;
  for (int i = 0; i < 8; ++i) end.PostRecv(1, 0, 4096);
  if (server) {
    end.Listen(name);
    end.Accept();
  } else {
    end.Connect(name);
  }
  RunRoundTrips(end, 100, !server);  // Faults in pages, maps regions.
  ForbidSystemCalls();
  RunRoundTrips(end, kRoundTrips, !server);
  // Without a destructor, which makes system calls.
  syscall(SYS_exit_group, 0);
  return 1;
}

TEST(SystemCalls, NoneWhilePolling) {
  const std::string name = FreshName();
  Child server([&] { return RunSide(name, true); });
  Child client([&] { return RunSide(name, false); });
  // The first to leave may be noticed by the other, whose control thread is not filtered.
  EXPECT_EQ(client.Join(), 0);
  EXPECT_EQ(server.Join(), 0);
}

TEST(SystemCalls, TheFilterOfThisTestWorks) {
  Child child([] {
    ForbidSystemCalls();
    return static_cast<int>(getppid());
  });
  EXPECT_EQ(child.Join(), -SIGSYS);
}

}  // namespace
}  // namespace verbena::soft
