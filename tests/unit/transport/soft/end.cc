// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/unit/transport/soft/end.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/wait.h"

namespace verbena::soft {

using std::chrono::steady_clock;

End::End(const EndOptions& options) {
  device = Must(CreateSoftDevice({.fence_every_send = options.fence}));
  domain = Must(device->AllocateProtectionDomain());
  if (options.channel) channel = Must(device->CreateCompletionChannel());
  queue = Must(device->CreateCompletionQueue(2 * options.depth, channel.get()));
  region = Must(domain->AllocateMemory(options.region_bytes,
                                       kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead));
  manager = Must(device->CreateConnectionManager());
  pair = Must(domain->CreateQueuePair({.send_queue = queue.get(),
                                       .recv_queue = queue.get(),
                                       .send_depth = options.depth,
                                       .recv_depth = options.depth}));
}

void End::Listen(const std::string& name) { listener = Must(manager->Listen({"shm", name, 0})); }

void End::Accept() {
  ConnectionEvent event = AwaitEvent();
  CHECK(event.type == ConnectionEvent::Type::kConnectRequest);
  Must(manager->Accept(std::move(event.request), *pair, {}));
  event = AwaitEvent();
  CHECK(event.type == ConnectionEvent::Type::kEstablished) << event.status;
}

void End::Connect(const std::string& name) {
  const auto until = steady_clock::now() + kHangBound;
  for (;;) {
    Must(manager->Connect(*pair, {"shm", name, 0}, {}));
    const ConnectionEvent event = AwaitEvent();
    if (event.type == ConnectionEvent::Type::kEstablished) return;
    CHECK(steady_clock::now() < until) << event.status;
    usleep(1000);
  }
}

ConnectionEvent End::AwaitEvent() {
  ConnectionEvent event{};
  while (!manager->PollEvent(&event)) {
    pollfd waiting{manager->fd(), POLLIN, 0};
    CHECK_EQ(poll(&waiting, 1, std::chrono::milliseconds(kHangBound).count()), 1) << "no event";
  }
  return event;
}

void End::PostRecv(uint64_t id, size_t offset, uint32_t bytes) {
  const ScatterGatherEntry sge{region->address() + offset, bytes, region->local_key()};
  const RecvWorkRequest request{id, {&sge, 1}};
  Must(pair->PostRecv({&request, 1}));
}

void End::Send(uint64_t id, size_t offset, uint32_t bytes, SendFlags flags) {
  const ScatterGatherEntry sge{region->address() + offset, bytes, region->local_key()};
  SendWorkRequest request;
  request.wr_id = id;
  request.flags = flags;
  request.sg_list = {&sge, 1};
  Must(pair->PostSend({&request, 1}));
}

WorkCompletion End::AwaitCompletion() {
  const auto until = steady_clock::now() + kHangBound;
  WorkCompletion completion;
  while (queue->Poll({&completion, 1}) == 0) {
    CHECK(steady_clock::now() < until) << "no completion";
    sched_yield();
  }
  return completion;
}

std::string FreshName() {
  // Not the process id: in Bazel's sandbox every test has the same one, and all share the names.
  static const uint32_t process = std::random_device{}();
  static int count = 0;
  return absl::StrCat("unit-soft-", process, "-", count++);
}

Child::Child(const std::function<int()>& body) {
  pid_ = fork();
  PCHECK(pid_ >= 0);
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(body());
}

Child::~Child() {
  if (pid_ <= 0) return;
  Kill();
  Join();
}

void Child::Kill() { kill(pid_, SIGKILL); }

int Child::Join() {
  int status = 0;
  PCHECK(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void* AllocateShared(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PCHECK(memory != MAP_FAILED);
  return memory;
}

}  // namespace verbena::soft
