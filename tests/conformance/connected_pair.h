// SPDX-License-Identifier: Apache-2.0
//
// The fixtures: a device; two parties on it; two parties whose queue pairs are connected.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "verbena/tests/conformance/device_under_test.h"
#include "verbena/tests/conformance/matchers.h"
#include "verbena/tests/conformance/party.h"
#include "verbena/tests/conformance/requests.h"

namespace verbena::conformance {

// Opens the device, or skips the test with the reason.
class DeviceFixture : public testing::Test {
 protected:
  void SetUp() override;
  virtual const DeviceUnderTest& subject() const = 0;

  Device& device() { return *device_; }
  const Capabilities& can() const { return device_->capabilities(); }
  Loop& loop() { return *loop_; }
  Address FreshAddress() const { return subject().fresh_address(); }

  // `rounds` of a long test, or fewer on a slow device.
  uint64_t Effort(uint64_t rounds) const { return rounds / subject().effort_divisor; }

  // Waits for the event; others are dropped.
  void ExpectAsyncEvent(AsyncEvent::Type type, const QueuePair& pair);
  // Takes one event if there is one.
  bool TakeAsyncEvent(AsyncEvent* event) { return device_->PollAsyncEvent(event); }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Loop> loop_;
};

class DeviceTest : public DeviceFixture, public testing::WithParamInterface<DeviceUnderTest> {
 protected:
  const DeviceUnderTest& subject() const override { return GetParam(); }
};

struct PairOptions {
  QueuePairOptions client_pair;
  QueuePairOptions server_pair;
  ConnectOptions client_connect;
  ConnectOptions server_connect;
};

// Two parties, a client and a server, not yet connected.
class TwoParties : public DeviceTest {
 protected:
  void SetUp() override;

  Party& client() { return *client_; }
  Party& server() { return *server_; }
  bool has_parties() const { return server_ != nullptr; }  // Not when the set-up failed.

  // Default options of both, to be changed and given to Connect().
  PairOptions Defaults();
  void Connect(const PairOptions& options);
  void Connect() { Connect(Defaults()); }

  void ReplaceParties(const PartyOptions& options);
  void DestroyClient() { client_.reset(); }

 private:
  std::unique_ptr<Party> client_;
  std::unique_ptr<Party> server_;
};

class ConnectedPair : public TwoParties {
 protected:
  void SetUp() override;
};

// One more connection between two parties.
struct Connection {
  std::unique_ptr<QueuePair> client;
  std::unique_ptr<QueuePair> server;
};
Connection ConnectOneMore(Party& client, Party& server, const Address& address);

#define VERBENA_CONFORMANCE(Suite)                                         \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(DevicesUnderTest()), \
                           [](const auto& info) { return info.param.name; })

// Skips the test where the device does not have the capability, and says which.
#define REQUIRE_CAPABILITY(capability)                                          \
  do {                                                                          \
    if (!can().capability) {                                                    \
      GTEST_SKIP() << subject().name << " declares no capability " #capability; \
    }                                                                           \
  } while (false)

}  // namespace verbena::conformance
