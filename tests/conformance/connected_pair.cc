// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/conformance/connected_pair.h"

#include "absl/strings/str_cat.h"

namespace verbena::conformance {
namespace {

// "SendReceive.DeliversInOrder" of the test that runs.
std::string RunningTest() {
  const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
  std::string suite = info.test_suite_name();
  suite.erase(0, suite.find('/') == std::string::npos ? 0 : suite.find('/') + 1);
  std::string name = info.name();
  return absl::StrCat(suite, ".", name.substr(0, name.find('/')));
}

}  // namespace

void DeviceFixture::SetUp() {
  loop_ = std::make_unique<Loop>(subject());
  const auto difference = subject().known_differences.find(RunningTest());
  if (difference != subject().known_differences.end()) {
    GTEST_SKIP() << subject().name << " differs here: " << difference->second;
  }
  absl::StatusOr<std::unique_ptr<Device>> device = subject().create();
  if (absl::IsUnavailable(device.status()) && !subject().absent_is_failure) {
    GTEST_SKIP() << "no device " << subject().name << ": " << device.status();
  }
  device_ = Must(std::move(device));
}

void DeviceFixture::ExpectAsyncEvent(AsyncEvent::Type type, const QueuePair& pair) {
  AsyncEvent event;
  const bool came = loop_->RunUntil([&] {
    return device_->PollAsyncEvent(&event) && event.type == type &&
           event.queue_pair_number == pair.number();
  });
  EXPECT_TRUE(came) << "no asynchronous event " << static_cast<uint32_t>(type) << " for queue pair "
                    << pair.number();
}

void TwoParties::SetUp() {
  DeviceTest::SetUp();
  if (!IsSkipped()) ReplaceParties({});
}

void TwoParties::ReplaceParties(const PartyOptions& options) {
  client_ = std::make_unique<Party>("client", device(), loop(), options);
  server_ = std::make_unique<Party>("server", device(), loop(), options);
}

PairOptions TwoParties::Defaults() {
  return {.client_pair = client_->DefaultOptions(),
          .server_pair = server_->DefaultOptions(),
          .client_connect = {},
          .server_connect = {}};
}

void TwoParties::Connect(const PairOptions& options) {
  client_->MakePair(options.client_pair);
  server_->MakePair(options.server_pair);
  Join(*client_, client_->pair(), *server_, server_->pair(), FreshAddress(), options.client_connect,
       options.server_connect);
}

void ConnectedPair::SetUp() {
  TwoParties::SetUp();
  if (!IsSkipped()) Connect();
}

Connection ConnectOneMore(Party& client, Party& server, const Address& address) {
  Connection connection{.client = client.NewQueuePair(client.DefaultOptions()),
                        .server = server.NewQueuePair(server.DefaultOptions())};
  Join(client, *connection.client, server, *connection.server, address);
  return connection;
}

}  // namespace verbena::conformance
