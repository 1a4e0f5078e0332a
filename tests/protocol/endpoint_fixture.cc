// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/protocol/endpoint_fixture.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/wait.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {
namespace {

// Tests run in parallel, in sandboxes with the same process ids and one namespace of addresses.
uint32_t Run() {
  static const uint32_t run = std::random_device{}();
  return run;
}

}  // namespace

Address FreshAddress() {
  static std::atomic<int> count{0};
  return {.scheme = "shm", .host = absl::StrCat("protocol-", Run(), "-", count++)};
}

// ---- EndpointUnderTest ----

EndpointUnderTest::EndpointUnderTest(Device& device, const EndpointOptions& options,
                                     const Clock* clock)
    : options_(options) {
  poller_ = Must(Poller::Create(device, Endpoint::CompletionsMax(options),
                                clock != nullptr ? *clock : system_clock_));
  endpoint_ = Must(poller_->CreateEndpoint(options, &handler_,
                                           [this](ConnectionEvent& event) { OnEvent(event); }));
}

EndpointUnderTest::~EndpointUnderTest() {
  if (endpoint_ != nullptr) Bury();
}

void EndpointUnderTest::Connect(const Address& address) {
  Must(poller_->connection_manager().Connect(endpoint_->queue_pair(), address,
                                             endpoint_->MakeConnectOptions(2)));
}

void EndpointUnderTest::Listen(const Address& address) {
  poller_->set_on_connect_request([this](std::unique_ptr<ConnectionRequest> request) {
    peer_hello_ = Must(DecodeHello(request->private_data().span()));
    Must(poller_->connection_manager().Accept(std::move(request), endpoint_->queue_pair(),
                                              endpoint_->MakeConnectOptions(3)));
  });
  listener_ = Must(poller_->connection_manager().Listen(address));
}

void EndpointUnderTest::OnEvent(ConnectionEvent& event) {
  if (event.type != ConnectionEvent::Type::kEstablished) {
    endpoint_->Break(event.status);
    return;
  }
  // The connecting side learns the peer's hello here, the accepting one knows it.
  held_hello_ = listener_ != nullptr ? peer_hello_ : Must(DecodeHello(event.private_data.span()));
  if (!hold_open_) OpenNow();
}

void EndpointUnderTest::Step() {
  poller_->Woken();  // Looks at connection events in the next step.
  poller_->RunOnce();
}

bool EndpointUnderTest::TrySend(const Frame& frame, CreditClass credit_class) {
  std::byte* memory = endpoint_->Reserve(frame.size(), credit_class);
  if (memory == nullptr) return false;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  std::copy(frame.begin(), frame.end(), memory);
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
  endpoint_->Commit(header.kind, header.call_id);
  poller_->WantService(endpoint_.get());
  return true;
}

void EndpointUnderTest::Bury() {
  EXPECT_EQ(receiver_not_ready(), 0u);
  poller_->Bury(std::move(endpoint_));
  EXPECT_TRUE(WaitUntil([this] {
    Step();
    return poller_->endpoint_count() == 0;
  })) << "the endpoint did not drain";
}

// ---- EndpointTest ----

std::unique_ptr<Device> EndpointTest::MakeDevice() { return Must(CreateSoftDevice()); }

void EndpointTest::Make(const EndpointOptions& options, const RawPeerOptions& peer_options) {
  device_ = MakeDevice();
  peer_device_ = Must(CreateSoftDevice());
  under_test_ = std::make_unique<EndpointUnderTest>(*device_, options, clock());
  peer_ = std::make_unique<RawPeer>(*peer_device_, peer_options);
  peer_->set_pump([this] { under_test_->Step(); });
}

void EndpointTest::OpenConnecting(const EndpointOptions& options,
                                  const RawPeerOptions& peer_options) {
  Make(options, peer_options);
  const Address address = FreshAddress();
  peer_->Listen(address);
  under_test_->Connect(address);
  peer_->AcceptAndOpen();
  StepUntil([this] { return endpoint().is_open(); }, "the endpoint to open");
}

void EndpointTest::Open(const EndpointOptions& options, const RawPeerOptions& peer_options) {
  Make(options, peer_options);
  const Address address = FreshAddress();
  under_test_->Listen(address);
  const Hello hello = peer_->ConnectAndOpen(address);
  EXPECT_EQ(hello.ring_depth, options.ring_depth);
  EXPECT_EQ(hello.slot_bytes, options.slot_bytes);
  StepUntil([this] { return endpoint().is_open(); }, "the endpoint to open");
}

EndpointTest::~EndpointTest() {
  under_test_.reset();
  peer_.reset();
  device_.reset();
  peer_device_.reset();
}

absl::Status EndpointTest::AwaitClosed() {
  StepUntil([this] { return handler().closed.has_value(); }, "the end of the connection");
  return *handler().closed;
}

void EndpointTest::AwaitFrames(size_t count) {
  StepUntil([&] { return handler().frames.size() >= count; }, "frames");
}

void EndpointTest::StepQuietly() {
  for (int i = 0; i < 2000; ++i) peer_->Step();
}

}  // namespace verbena
