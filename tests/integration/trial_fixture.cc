// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/integration/trial_fixture.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "verbena/tests/support/vm_environment.h"

namespace verbena {
namespace {

// Tests run in parallel, in sandboxes with the same process ids and one namespace of addresses.
uint32_t Run() {
  static const uint32_t run = std::random_device{}();
  return run;
}

}  // namespace

std::string FreshTarget() {
  // In a VM with an RDMA device (//tests/vm).
  if (!Environment("VERBENA_TEST_HOST").empty()) return FreshRdmaAddress().ToString();
  static std::atomic<int> count{0};
  return absl::StrCat("shm:integration-", Run(), "-", count++);
}

EchoResult Echo(trial::Trial::Stub& stub, const std::string& text, milliseconds timeout) {
  ClientContext context;
  context.set_timeout(timeout);
  trial::Text response;
  absl::Status status = stub.Echo(&context, MakeText(text), &response);
  return {std::move(status), response.text()};
}

absl::Status Work(trial::Trial::Stub& stub, uint32_t work_ms, milliseconds timeout) {
  ClientContext context;
  context.set_timeout(timeout);
  trial::WorkRequest request;
  request.set_milliseconds(work_ms);
  trial::Text response;
  return stub.Work(&context, request, &response);
}

void TrialTest::StartServer(const Change& change) {
  ServerBuilder builder;
  builder.AddListeningPort(target_).RegisterService(&service_);
  if (executor_ != nullptr) builder.SetExecutor(executor_.get());
  RegisterMore(builder);
  change(builder.options());
  server_ = Must(builder.BuildAndStart());
}

void TrialTest::StartServerOnExecutor(int threads, const Change& change) {
  executor_ = std::make_unique<ThreadExecutor>(threads);
  StartServer(change);
}

void TrialTest::StopServer(milliseconds grace) {
  const auto start = std::chrono::steady_clock::now();
  server_->Shutdown(grace);
  EXPECT_LT(std::chrono::steady_clock::now() - start, grace + std::chrono::seconds(8));
  const ServerStatistics statistics = server_->statistics();
  EXPECT_EQ(statistics.receiver_not_ready, 0u);
  EXPECT_EQ(statistics.protocol_errors, 0u);
  EXPECT_EQ(statistics.calls_in_flight, 0u);
  EXPECT_EQ(statistics.connections, 0u);
  server_.reset();
}

std::shared_ptr<Channel> TrialTest::MakeChannel(ChannelOptions options) {
  std::shared_ptr<Channel> channel = CreateChannel(target_, std::move(options));
  channels_.push_back(channel);
  return channel;
}

std::unique_ptr<trial::Trial::Stub> TrialTest::MakeConnectedStub() {
  std::shared_ptr<Channel> channel = MakeChannel();
  EXPECT_THAT(channel->WaitForConnected(milliseconds(20'000)), IsOk());
  return trial::Trial::NewStub(std::move(channel));
}

void TrialTest::TearDownAll() {
  // What a connection counted is in the statistics once it has ended; so the server goes first,
  // while channels are still there to notice and to be asked.
  if (server_ != nullptr) StopServer();
  for (const std::shared_ptr<Channel>& channel : channels_) {
    EXPECT_TRUE(WaitUntil([&] { return !channel->WaitForConnected(milliseconds(1000)).ok(); }))
        << "a channel did not notice that its server is gone";
    EXPECT_EQ(channel->statistics().receiver_not_ready, 0u);
  }
  channels_.clear();
  executor_.reset();
}

}  // namespace verbena
