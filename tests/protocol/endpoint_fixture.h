// SPDX-License-Identifier: Apache-2.0
//
// A real Endpoint on a real Poller, stepped by the test, and a RawPeer at the other end of its
// connection. One thread drives both, so a test decides what happens in which order.

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verbena/base/clock.h"
#include "verbena/tests/support/frames.h"
#include "verbena/tests/support/leak_guard.h"
#include "verbena/tests/support/log_guard.h"
#include "verbena/tests/support/raw_peer.h"
#include "verbena/transport/endpoint.h"
#include "verbena/transport/poller.h"

namespace verbena {

// Writes down what the endpoint tells the layer above.
class RecordingHandler final : public Endpoint::Handler {
 public:
  struct Received {
    uint32_t slot;
    Frame frame;
  };

  Endpoint::Disposition OnFrame(uint32_t slot, std::span<const std::byte> frame) override {
    EXPECT_FALSE(closed) << "a frame after the end";
    frames.push_back({slot, Frame(frame.begin(), frame.end())});
    return keeps ? Endpoint::Disposition::kKept : Endpoint::Disposition::kConsumed;
  }
  void OnLanded(Buffer frame) override { landed.push_back(std::move(frame)); }
  void OnPayloadDenied(uint32_t call_id, const absl::Status& why, bool) override {
    denied.emplace_back(call_id, why);
  }
  void OnWritable() override {
    ++writable;
    if (on_writable) on_writable();
  }
  void OnClosed(const absl::Status& why) override {
    EXPECT_FALSE(closed) << "told twice: " << why;
    closed = why;
  }

  std::vector<Received> frames;
  std::vector<Buffer> landed;
  std::vector<std::pair<uint32_t, absl::Status>> denied;
  bool AwaitsPeer() const override { return awaits; }

  bool awaits = true;
  bool keeps = false;  // Slots are released by the test.
  int writable = 0;
  std::function<void()> on_writable;
  std::optional<absl::Status> closed;
};

// One endpoint with its poller and handler.
class EndpointUnderTest {
 public:
  // `clock` null: the system's.
  EndpointUnderTest(Device& device, const EndpointOptions& options, const Clock* clock = nullptr);
  // Buries the endpoint and expects it to drain.
  ~EndpointUnderTest();

  // To or from `address`; neither waits.
  void Connect(const Address& address);
  void Listen(const Address& address);

  // The established event is taken, but the endpoint opens only by OpenNow().
  void HoldOpen() { hold_open_ = true; }
  bool open_held() const { return held_hello_.has_value(); }
  void OpenNow() {
    endpoint_->Open(*held_hello_, listener_ != nullptr ? Endpoint::Side::kAccepting
                                                       : Endpoint::Side::kConnecting);
    poller_->WantService(endpoint_.get());
  }

  void Step();
  Endpoint& endpoint() { return *endpoint_; }
  Poller& poller() { return *poller_; }
  RecordingHandler& handler() { return handler_; }
  uint64_t receiver_not_ready() { return endpoint_->queue_pair().counters().receiver_not_ready; }

  // Sends a frame now; false when there is no room.
  bool TrySend(const Frame& frame, CreditClass credit_class = CreditClass::kData);
  // Buries it and expects that it drains.
  void Bury();
  // Hands it to the poller, and nothing more.
  void BuryOnly() { poller_->Bury(std::move(endpoint_)); }

 private:
  void OnEvent(ConnectionEvent& event);

  const SystemClock system_clock_;
  const EndpointOptions options_;
  std::unique_ptr<Poller> poller_;
  RecordingHandler handler_;
  std::unique_ptr<Listener> listener_;
  Hello peer_hello_;
  bool hold_open_ = false;
  std::optional<Hello> held_hello_;
  std::unique_ptr<Endpoint> endpoint_;
};

Address FreshAddress();

// An endpoint that listened, and a raw peer that connected to it.
class EndpointTest : public testing::Test {
 protected:
  void Open(const EndpointOptions& options = {}, const RawPeerOptions& peer_options = {});
  // The other way round: the peer listens and the endpoint connects.
  void OpenConnecting(const EndpointOptions& options = {}, const RawPeerOptions& peer_options = {});
  // What the endpoint is made on.
  virtual std::unique_ptr<Device> MakeDevice();
  virtual const Clock* clock() { return nullptr; }
  ~EndpointTest() override;

  Endpoint& endpoint() { return under_test_->endpoint(); }
  RecordingHandler& handler() { return under_test_->handler(); }
  RawPeer& peer() { return *peer_; }
  // Steps until the handler has been told of the end; the reason.
  absl::Status AwaitClosed();
  // Steps until `count` frames in all have come; fails the test when they don't.
  void AwaitFrames(size_t count);
  void StepUntil(const std::function<bool()>& done, const char* what) {
    peer_->StepUntil(done, what);
  }
  // Gives what must not happen the time to happen.
  void StepQuietly();

 private:
  void Make(const EndpointOptions& options, const RawPeerOptions& peer_options);

 protected:
  LogGuard logs_;
  LeakGuard leaks_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> peer_device_;
  std::unique_ptr<EndpointUnderTest> under_test_;
  std::unique_ptr<RawPeer> peer_;
};

}  // namespace verbena
