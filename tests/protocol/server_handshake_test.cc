// SPDX-License-Identifier: Apache-2.0
//
// What a real server answers to hellos, good and bad.

#include <string>

#include "absl/strings/escaping.h"
#include "verbena/tests/protocol/server_fixture.h"

namespace verbena {
namespace {

class ServerHandshake : public ServerProtocolTest {
 protected:
  // Receive `hello`; expect a refusal with these bytes.
  void ReceiveExpectRefusal(const PrivateData& hello, const Frame& refusal,
                            const std::string& log = "refused a connection") {
    logs_.Allow(log);
    StartServer();
    MakePeer().Connect(address_, hello);
    const ConnectionEvent event = peer_->AwaitEvent();
    EXPECT_EQ(event.type, ConnectionEvent::Type::kRejected);
    ASSERT_GE(event.private_data.size, refusal.size());
    EXPECT_TRUE(std::equal(refusal.begin(), refusal.end(), event.private_data.bytes.begin()));
    EXPECT_EQ(server_->statistics().connections_refused, 1u);
    EXPECT_EQ(server_->statistics().connections_accepted, 0u);
    ExpectServesOthers();
  }
  static PrivateData Hexadecimal(const std::string& hex) {
    const Frame frame = HexFrame(hex);
    PrivateData data;
    std::copy(frame.begin(), frame.end(), data.bytes.begin());
    data.size = frame.size();
    return data;
  }
};

constexpr char kMalformed[] = "56 52 42 4e 04 00 00 00 01 00 00 00 00 00 00 00";
constexpr char kVersion[] = "56 52 42 4e 01 00 00 00 01 00 00 00 00 00 00 00";

TEST_F(ServerHandshake, ReceiveAGoodHelloExpectOurs) {
  StartServer(nullptr, [](ServerOptions& options) {
    options.endpoint.ring_depth = 64;
    options.endpoint.slot_bytes = 2048;
  });
  const Hello hello = MakePeer().ConnectAndOpen(address_);
  EXPECT_EQ(hello.ring_depth, 64u);
  EXPECT_EQ(hello.slot_bytes, 2048u);
  EXPECT_TRUE(WaitUntil([this] { return server_->statistics().connections == 1; }));
  EXPECT_EQ(server_->statistics().connections_accepted, 1u);
}

TEST_F(ServerHandshake, GivesEachConnectionAnEpochOfItsOwn) {
  StartServer();
  const Hello first = MakePeer().ConnectAndOpen(address_);
  RawPeer other(*device_);
  EXPECT_NE(other.ConnectAndOpen(address_).epoch, first.epoch);
}

TEST_F(ServerHandshake, ReceiveVersion2ExpectARefusalWithOurVersion) {
  ReceiveExpectRefusal(Hexadecimal("56 52 42 4e 02 00 00 00 80 00 00 00 00 10 00 00"
                                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"),
                       HexFrame(kVersion));
}

TEST_F(ServerHandshake, ReceiveVersion0ExpectARefusalWithOurVersion) {
  ReceiveExpectRefusal(Hexadecimal("56 52 42 4e 00 00 00 00 80 00 00 00 00 10 00 00"
                                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"),
                       HexFrame(kVersion));
}

TEST_F(ServerHandshake, ReceiveGarbageExpectMalformed) {
  PrivateData garbage;
  garbage.bytes.fill(std::byte{0xa5});
  garbage.size = garbage.bytes.size();
  ReceiveExpectRefusal(garbage, HexFrame(kMalformed));
}

TEST_F(ServerHandshake, ReceiveNoHelloExpectMalformed) {
  ReceiveExpectRefusal({}, HexFrame(kMalformed));
}

TEST_F(ServerHandshake, ReceiveARingOfZeroExpectMalformed) {
  ReceiveExpectRefusal(Hexadecimal("56 52 42 4e 01 00 00 00 00 00 00 00 00 10 00 00"
                                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"),
                       HexFrame(kMalformed));
}

TEST_F(ServerHandshake, ReceiveASlotOfFourGigabytesExpectMalformed) {
  ReceiveExpectRefusal(Hexadecimal("56 52 42 4e 01 00 00 00 80 00 00 00 ff ff ff ff"
                                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"),
                       HexFrame(kMalformed));
}

TEST_F(ServerHandshake, ReceiveReservedBitsExpectMalformed) {
  ReceiveExpectRefusal(Hexadecimal("56 52 42 4e 01 00 00 00 80 00 00 00 00 10 00 00"
                                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01"),
                       HexFrame(kMalformed));
}

TEST_F(ServerHandshake, ReceiveOneConnectionTooManyExpectARefusalWithTheLimit) {
  StartServer(nullptr, [](ServerOptions& options) { options.connections_max = 2; });
  OpenPeer();
  RawPeer second(*device_);
  second.ConnectAndOpen(address_);
  ASSERT_TRUE(WaitUntil([this] { return server_->statistics().connections == 2; }));
  RawPeer third(*device_);
  third.Connect(address_, EncodeHello(third.GoodHello()));
  ConnectionEvent event = third.AwaitEvent();
  EXPECT_EQ(event.type, ConnectionEvent::Type::kRejected);
  EXPECT_THAT(DecodeRefusal(event.private_data.span()),
              Is(absl::StatusCode::kResourceExhausted, "all the connections it takes, 2"));
  second.Disconnect();
  ASSERT_TRUE(WaitUntil([this] { return server_->statistics().connections == 1; }));
  third.Renew();
  third.ConnectAndOpen(address_);
}

TEST_F(ServerHandshake, CountsConnectionsThatAreStillBeingAcceptedAgainstTheLimit) {
  StartServer(nullptr, [](ServerOptions& options) {
    options.connections_max = 2;
    options.poller_count = 2;
  });
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 8; ++i) {
    peers.push_back(std::make_unique<RawPeer>(*device_, RawPeerOptions{.ring_depth = 16}));
  }
  for (auto& peer : peers) peer->Connect(address_, EncodeHello(peer->GoodHello()));
  int accepted = 0;
  for (auto& peer : peers) {
    accepted += peer->AwaitEvent().type == ConnectionEvent::Type::kEstablished ? 1 : 0;
  }
  EXPECT_EQ(accepted, 2);
}

TEST_F(ServerHandshake, APeerThatVanishesRightAfterItsHelloIsForgotten) {
  StartServer();
  for (int i = 0; i < 20; ++i) {
    MakePeer({.ring_depth = 16}).Connect(address_, EncodeHello(peer_->GoodHello()));
    if (i % 2 == 0) peer_->Step();
    peer_->Vanish();
    peer_.reset();
  }
  ExpectServesOthers();
}

}  // namespace
}  // namespace verbena
