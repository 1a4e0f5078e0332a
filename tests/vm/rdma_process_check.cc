// SPDX-License-Identifier: Apache-2.0
//
// What belongs to the process: its limit of locked memory, and its children.

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tests/vm/rdma_check.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tests/support/text_service.h"

namespace verbena {
namespace {

using conformance::Buffer;
using conformance::Must;
using conformance::Party;
using conformance::Send;
using conformance::Write;

// ---- The limit of locked memory ----

void DropTheRightToLockMemory() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2]{};
  PCHECK(syscall(SYS_capget, &header, data) == 0);
  data[0].effective &= ~(1u << CAP_IPC_LOCK);
  data[0].permitted &= ~(1u << CAP_IPC_LOCK);
  PCHECK(syscall(SYS_capset, &header, data) == 0);
}

void LimitLockedMemory(rlim_t bytes) {
  DropTheRightToLockMemory();
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  PCHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
}

void CheckNamesLimitAndNeed(const absl::Status& status, size_t limit, size_t need) {
  CHECK(absl::IsResourceExhausted(status)) << status;
  CHECK(absl::StrContains(status.message(), absl::StrCat("limit is ", limit, " bytes"))) << status;
  CHECK(absl::StrContains(status.message(), absl::StrCat(need, " bytes could not be"))) << status;
}

// Each in a process of its own, which has lost its rights.
class LockedMemory : public RdmaCheck {
 protected:
  static constexpr size_t kLimit = size_t{256} << 10;
  static constexpr size_t kNeed = size_t{1} << 20;
  LockedMemory() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LockedMemory, RegistrationAboveTheLimitNamesItAndTheNeed) {
  const auto body = [this] {
    const auto domain = Must(device().AllocateProtectionDomain());
    LimitLockedMemory(kLimit);
    std::vector<std::byte> memory(kNeed);
    CheckNamesLimitAndNeed(domain->RegisterMemory(memory.data(), kNeed, kAccessLocalWrite).status(),
                           kLimit, kNeed);
    CheckNamesLimitAndNeed(domain->AllocateMemory(kNeed, kAccessLocalWrite).status(), kLimit,
                           kNeed);
    // What fits is registered, as often as it is given back.
    for (int i = 0; i < 100; ++i) {
      CHECK(domain->RegisterMemory(memory.data(), 4096, kAccessLocalWrite).ok());
      CHECK(domain->AllocateMemory(4096, kAccessLocalWrite).ok());
    }
    _exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

TEST_F(LockedMemory, ChannelAboveTheLimitSaysSo) {
  const auto body = [] {
    LimitLockedMemory(4096);
    const auto channel = CreateChannel(FreshRdmaAddress().ToString());
    const absl::Status status = channel->WaitForConnected(std::chrono::seconds(20));
    CHECK(absl::IsResourceExhausted(status)) << status;
    CHECK(absl::StrContains(status.message(), "RLIMIT_MEMLOCK")) << status;
    _exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

TEST_F(LockedMemory, ServerAboveTheLimitRefusesConnectionsAndLivesOn) {
  const auto body = [] {
    const std::string target = FreshRdmaAddress().ToString();
    // One without the limit to connect from; it waits for the other's port.
    const pid_t client = fork();
    PCHECK(client >= 0);
    if (client == 0) {
      absl::Status status;
      for (int i = 0; i < 100; ++i) {
        status = CreateChannel(target)->WaitForConnected(std::chrono::seconds(5));
        // Until then nobody listens, as it says.
        if (absl::StrContains(status.message(), "refused")) break;
        usleep(50'000);
      }
      LOG(INFO) << status;
      // Neither a connection nor a time-out. Why is in the server's log.
      const bool refused =
          absl::IsUnavailable(status) && absl::StrContains(status.message(), "refused");
      _exit(refused ? 0 : 1);
    }
    LimitLockedMemory(4096);
    TextService service;
    ServerBuilder builder;
    builder.AddListeningPort(target).RegisterService(&service);
    auto server = builder.BuildAndStart();
    if (!server.ok()) {
      // Also an answer.
      CHECK(absl::StrContains(server.status().message(), "RLIMIT_MEMLOCK")) << server.status();
      kill(client, SIGKILL);
      waitpid(client, nullptr, 0);
      _exit(0);
    }
    int ended = 0;
    PCHECK(waitpid(client, &ended, 0) == client);
    (*server)->Shutdown();
    _exit(WIFEXITED(ended) ? WEXITSTATUS(ended) : 2);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

// ---- fork(2) ----

class Fork : public RdmaCheck {
 protected:
  static constexpr size_t kBytes = 64 << 10;

  void SetUp() override {
    RdmaCheck::SetUp();
    client_ = std::make_unique<Party>("client", device(), loop());
    server_ = std::make_unique<Party>("server", device(), loop());
    connection_ = conformance::ConnectOneMore(*client_, *server_, FreshAddress());
    from_ = &client_->Allocate(kBytes);
    to_ = &server_->Allocate(kBytes);
    written_ = &server_->Allocate(kBytes);
    small_ = &server_->RegisterUserMemory(64);
  }

  // A SEND into the pages of the library, one into the heap, and a WRITE, all with their contents.
  void Transfer(uint32_t seed) {
    SCOPED_TRACE(seed);
    conformance::FillPattern(from_->bytes(), seed);
    server_->PostRecv(*connection_.server, 10, {to_->All()});
    server_->PostRecv(*connection_.server, 11, {small_->All()});
    client_->Post(*connection_.client, {Write(1, {from_->All()}, written_->Start()),
                                        Send(2, {from_->All()}), Send(3, {from_->First(64)})});
    for (uint64_t id : {1, 2, 3}) client_->ExpectSuccess(id);
    server_->ExpectReceived(10, kBytes);
    server_->ExpectReceived(11, 64);
    EXPECT_TRUE(conformance::HoldsPattern(to_->bytes(), seed));
    EXPECT_TRUE(conformance::HoldsPattern(small_->bytes(), seed));
    EXPECT_TRUE(conformance::HoldsPattern(written_->bytes(), seed));
  }

  // Transfers before, while the child lives, and after it.
  void TransferAround(const std::function<void()>& child) {
    Transfer(1);
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    // Receives that wait while the pages are copied.
    server_->PostRecv(*connection_.server, 20, {to_->All()});
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      close(gate[1]);
      char ignored;
      while (read(gate[0], &ignored, 1) == 1) {
      }
      child();
      _exit(99);
    }
    close(gate[0]);
    conformance::FillPattern(from_->bytes(), 2);
    client_->Post(*connection_.client, Send(4, {from_->All()}));
    client_->ExpectSuccess(4);
    server_->ExpectReceived(20, kBytes);
    EXPECT_TRUE(conformance::HoldsPattern(to_->bytes(), 2));
    for (uint32_t seed = 3; seed < 8; ++seed) Transfer(seed);
    close(gate[1]);  // It goes on.
    for (uint32_t seed = 8; seed < 30; ++seed) Transfer(seed);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    for (uint32_t seed = 30; seed < 40; ++seed) Transfer(seed);
    // New connections and registrations are as good.
    connection_ = conformance::ConnectOneMore(*client_, *server_, FreshAddress());
    Transfer(40);
  }

  std::unique_ptr<Party> client_;
  std::unique_ptr<Party> server_;
  conformance::Connection connection_;
  const Buffer* from_ = nullptr;
  const Buffer* to_ = nullptr;
  const Buffer* written_ = nullptr;
  const Buffer* small_ = nullptr;
};

TEST_F(Fork, ChildThatLeavesAtOnceDisturbsNothing) {
  TransferAround([] { _exit(0); });
}

TEST_F(Fork, ChildThatRunsItsExitHandlersDisturbsNothing) {
  TransferAround([] { std::exit(0); });
}

TEST_F(Fork, ChildThatExecsDisturbsNothing) {
  TransferAround([] { execl("/bin/true", "true", nullptr); });
}

TEST_F(Fork, ChildThatWritesToItsCopyDisturbsNothing) {
  TransferAround([this] {
    for (const Buffer* buffer : {from_, to_, written_, small_}) {
      std::memset(buffer->bytes().data(), 0xee, buffer->bytes().size());
    }
    _exit(0);
  });
}

// The descriptors of the device are not for whoever is executed.
TEST_F(Fork, ExecutedChildInheritsNoDescriptor) {
  const char* const command =
      "for f in /proc/$$/fd/*; do readlink $f; done | grep -c -e infiniband -e anon_inode";
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    execl("/bin/bash", "bash", "-c", command, nullptr);
    _exit(99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  // grep's "none".
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

}  // namespace
}  // namespace verbena
