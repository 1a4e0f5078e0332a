// SPDX-License-Identifier: Apache-2.0
//
// A real Server with a TextService, and raw peers that connect to it.

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "verbena/rpc/server.h"
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

class ServerProtocolTest : public testing::Test {
 protected:
  ServerProtocolTest()
      : ServerProtocolTest([] { return Must(CreateSoftDevice()); }, FreshAddress()) {}
  // The server listens at `address`; peers are made on this device, which serves it, too.
  ServerProtocolTest(std::unique_ptr<Device> (*make_device)(), Address address)
      : device_(make_device()), address_(std::move(address)) {}
  ~ServerProtocolTest() override {
    peer_.reset();
    if (server_ == nullptr) return;
    EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 0; }))
        << "the server keeps the connections of peers that are gone";
    Shutdown();
  }

  void Shutdown() {
    const auto start = std::chrono::steady_clock::now();
    server_->Shutdown(std::chrono::milliseconds(100));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(server_->statistics().receiver_not_ready, 0u);
    EXPECT_EQ(server_->statistics().calls_in_flight, 0u);
    EXPECT_EQ(server_->statistics().connections, 0u);
    server_.reset();
  }

  void StartServer(
      TextService::Function function = nullptr,
      const std::function<void(ServerOptions&)>& change = [](ServerOptions&) {}) {
    service_ = function ? std::make_unique<TextService>(std::move(function))
                        : std::make_unique<TextService>();
    ServerBuilder builder;
    builder.AddListeningPort(address_.ToString()).RegisterService(service_.get());
    change(builder.options());
    server_ = Must(builder.BuildAndStart());
  }
  RawPeer& MakePeer(const RawPeerOptions& options = {}) {
    peer_ = std::make_unique<RawPeer>(*device_, options);
    return *peer_;
  }
  // A peer that has shaken hands.
  RawPeer& OpenPeer(const RawPeerOptions& options = {}) {
    MakePeer(options).ConnectAndOpen(address_);
    return *peer_;
  }
  // A request of the service's only method.
  static Frame Request(uint32_t call_id, std::string_view text, uint32_t timeout_us = kNoTimeout,
                       uint16_t credits = 0) {
    return RequestFrame(call_id, kTextMethod.id, text, timeout_us, credits);
  }
  // The next response: its call id, its status and its payload.
  struct Answer {
    uint32_t call_id;
    absl::Status status;
    std::string text;
  };
  Answer AwaitAnswer() {
    const Frame frame = peer_->AwaitAnswer();
    EXPECT_EQ(KindOf(frame), FrameKind::kResponse);
    const auto header = HeaderOf<ResponseHeader>(frame);
    const std::string text = PayloadOf<ResponseHeader>(frame);
    return {header.frame.call_id,
            absl::Status(static_cast<absl::StatusCode>(header.status_code), text), text};
  }
  // A new, well-behaved peer is served, whatever the one before did.
  void ExpectServesOthers() {
    RawPeer other(*device_);
    other.ConnectAndOpen(address_);
    other.Send(Request(77, "still there?"));
    const Frame answer = other.AwaitAnswer();
    EXPECT_EQ(HeaderOf<ResponseHeader>(answer).status_code, 0u);
    EXPECT_EQ(PayloadOf<ResponseHeader>(answer), "still there?");
    other.Disconnect();
  }

  LogGuard logs_;
  LeakGuard leaks_;
  std::unique_ptr<Device> device_;
  const Address address_;
  std::unique_ptr<TextService> service_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RawPeer> peer_;
};

}  // namespace verbena
