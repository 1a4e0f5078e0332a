// SPDX-License-Identifier: Apache-2.0
//
// A real Channel, and a raw peer that plays its server.

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "verbena/rpc/unary_call.h"
#include "verbena/tests/support/leak_guard.h"
#include "verbena/tests/support/log_guard.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/raw_peer.h"
#include "verbena/tests/support/status_matchers.h"
#include "verbena/tests/support/text_service.h"
#include "verbena/tests/support/wait.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {

Address FreshAddress();

// A call in flight. Must outlive its end.
class PendingCall {
 public:
  // `prepare`: what else to say of the call before it starts.
  PendingCall(
      Channel& channel, std::string request,
      std::chrono::milliseconds timeout = std::chrono::milliseconds::max(),
      const std::function<void(ClientContext&)>& prepare = [](ClientContext&) {})
      : request_(std::move(request)) {
    context_.set_timeout(timeout);
    prepare(context_);
    StartUnary(channel, kTextMethod, &context_, &request_, &response_, [this](absl::Status status) {
      EXPECT_FALSE(done()) << "ended twice";
      status_ = std::move(status);
      done_.store(true);
    });
  }
  ~PendingCall() {
    EXPECT_TRUE(WaitUntil([this] { return done(); })) << "a call never ended";
  }

  bool done() const { return done_.load(); }
  const absl::Status& Await() {
    if (!WaitUntil([this] { return done(); })) throw std::runtime_error("a call did not end");
    return status_;
  }
  ClientContext& context() { return context_; }
  const std::string& response() const { return response_; }

 private:
  ClientContext context_;
  std::string request_;
  std::string response_;
  absl::Status status_;
  std::atomic<bool> done_{false};
};

class ClientProtocolTest : public testing::Test {
 protected:
  ClientProtocolTest()
      : ClientProtocolTest([] { return Must(CreateSoftDevice()); }, FreshAddress()) {}
  // The peer listens at `address` on this device; the channel connects to it.
  ClientProtocolTest(std::unique_ptr<Device> (*make_device)(), Address address)
      : device_(make_device()), address_(std::move(address)) {}
  ~ClientProtocolTest() override {
    if (channel_ != nullptr) {
      EXPECT_EQ(channel_->statistics().receiver_not_ready, 0u);
    }
    channel_.reset();
  }

  RawPeer& MakeServer(const RawPeerOptions& options = {}) {
    peer_ = std::make_unique<RawPeer>(*device_, options);
    peer_->Listen(address_);
    return *peer_;
  }
  void MakeChannel(ChannelOptions options = {}) {
    options.reconnect_backoff_min = std::chrono::milliseconds(1);
    options.reconnect_backoff_max = std::chrono::milliseconds(1);
    // The raw peer answers when the test gets to it, which on a loaded machine may take a while.
    if (options.connect_timeout == ChannelOptions().connect_timeout) {
      options.connect_timeout = kHangBound;
    }
    channel_ = CreateChannel(address_.ToString(), options);
  }
  // Starts one call, shakes hands and returns the request's call id.
  uint32_t OpenWithCall(std::unique_ptr<PendingCall>& call, std::string text,
                        std::chrono::milliseconds timeout = std::chrono::milliseconds::max()) {
    call = std::make_unique<PendingCall>(*channel_, std::move(text), timeout);
    peer_->AcceptAndOpen();
    return AwaitRequest().frame.call_id;
  }
  RequestHeader AwaitRequest() {
    const Frame frame = peer_->AwaitAnswer();
    EXPECT_EQ(KindOf(frame), FrameKind::kRequest);
    return HeaderOf<RequestHeader>(frame);
  }

  LogGuard logs_;
  LeakGuard leaks_;
  std::unique_ptr<Device> device_;
  const Address address_;
  std::unique_ptr<RawPeer> peer_;
  std::shared_ptr<Channel> channel_;
};

}  // namespace verbena
