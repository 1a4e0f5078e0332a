// SPDX-License-Identifier: Apache-2.0
//
// Connecting, reconnecting and ending. The calls are in client_calls.cc.

#include "verbena/rpc/client_connection.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/rpc/device_choice.h"

namespace verbena {
namespace {

// A full queue makes a starting thread wait, so its size bounds memory and nothing else.
constexpr size_t kStartsMax = 1024;
// The last line of defence against a wait that nobody ends: look again.
constexpr int64_t kWaitBoundNs = 100'000'000;

int64_t ToNs(std::chrono::milliseconds duration) {
  return std::chrono::nanoseconds(duration).count();
}

}  // namespace

ClientConnection::ClientConnection(std::string_view target, ChannelOptions options)
    : target_(target),
      options_(std::move(options)),
      starts_(kStartsMax),
      calls_(std::clamp<uint32_t>(options_.outstanding_calls_max, 1, CallTable::kCapacityMax),
             this),
      cancel_scan_(this),
      random_((uint64_t{std::random_device{}()} << 32) | std::random_device{}()) {
  cancels_waiting_.reserve(calls_.capacity());
  broken_ = Initialize();
}

absl::Status ClientConnection::Initialize() {
  absl::StatusOr<Address> address = Address::Parse(target_);
  if (!address.ok()) return address.status();
  address_ = *std::move(address);
  if (absl::Status status = options_.endpoint.Validate(); !status.ok()) return status;
  if (options_.outstanding_calls_max < 1 ||
      options_.outstanding_calls_max > CallTable::kCapacityMax) {
    return absl::InvalidArgumentError(absl::StrCat("ChannelOptions::outstanding_calls_max is ",
                                                   options_.outstanding_calls_max,
                                                   ": it must be 1 to ", CallTable::kCapacityMax));
  }
  auto device = ChooseDevice(options_.devices, address_, AddressUse::kConnect);
  if (!device.ok()) return device.status();
  device_ = *std::move(device);
  // The endpoint in use, and those of earlier connections that still drain.
  constexpr uint32_t kEndpointsAtOnce = 4;
  auto poller = Poller::Create(
      *device_, kEndpointsAtOnce * Endpoint::CompletionsMax(options_.endpoint), clock_,
      device_);
  if (!poller.ok()) return poller.status();
  poller_ = *std::move(poller);
  driver_ = std::make_unique<PollerDriver>(*poller_, options_.poll, PollerDriver::Kind::kShared);
  return absl::OkStatus();
}

ClientConnection::~ClientConnection() {
  if (driver_ == nullptr) return;
  CHECK(!driver_->HeldByThisThread())
      << "the last reference to a channel was dropped inside one of its callbacks";
  driver_->Join();
  driver_.reset();  // From here on this thread owns the poller.
  ShutDown();
}

void ClientConnection::ShutDown() {
  const absl::Status cancelled = absl::CancelledError("the channel was destroyed");
  CallStart start;
  while (starts_.TryPop(&start)) RefuseOnPoller(std::move(start), cancelled);
  RunStartsOnPoller();
  FailAllOnPoller(cancelled, cancelled);
  poller_->Cancel(&cancel_scan_);
  TellWaitersOnPoller(cancelled);
  if (endpoint_ != nullptr) {
    endpoint_->Close();
    if (endpoint_ != nullptr) poller_->Bury(std::move(endpoint_));
  }
  poller_->Drain();
}

ChannelStatistics ClientConnection::statistics() const {
  ChannelStatistics result;
  result.calls_started = calls_started_.value();
  result.calls_ok = calls_ok_.value();
  result.calls_failed = calls_failed_.value();
  result.connects = connects_.value();
  result.disconnects = disconnects_.value();
  result.peers_lost = peers_lost_.value();
  result.receiver_not_ready = receiver_not_ready_.value();
  payload_.AddTo(&result);
  return result;
}

// ---- Connecting ----

absl::Status ClientConnection::EnsureConnectingOnPoller() {
  switch (state_) {
    case State::kReady:
    case State::kConnecting:
      return absl::OkStatus();
    case State::kBackoff: {
      const int64_t wait_ns = retry_at_ns_ - poller_->NowNs();
      if (wait_ns > 0) {
        return absl::Status(connect_error_.code(),
                            absl::StrCat(connect_error_.message(), " (the next attempt is made in ",
                                         wait_ns / 1'000'000 + 1, " ms)"));
      }
      break;
    }
    case State::kIdle:
      break;
  }
  auto endpoint = poller_->CreateEndpoint(
      options_.endpoint, this, [this](ConnectionEvent& event) { OnEventOnPoller(event); });
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = *std::move(endpoint);
  state_ = State::kConnecting;
  ConnectOptions connect = endpoint_->MakeConnectOptions(random_.Next());
  connect.timeout = options_.connect_timeout;
  absl::Status status =
      poller_->connection_manager().Connect(endpoint_->queue_pair(), address_, connect);
  if (!status.ok()) ConnectFailedOnPoller(status);
  return status;
}

void ClientConnection::OnEventOnPoller(ConnectionEvent& event) {
  switch (event.type) {
    case ConnectionEvent::Type::kEstablished:
      EstablishedOnPoller(event);
      break;
    case ConnectionEvent::Type::kRejected:
      ConnectFailedOnPoller(event.private_data.size > 0 ? DecodeRefusal(event.private_data.span())
                                                        : event.status);
      break;
    case ConnectionEvent::Type::kUnreachable:
      // Whatever the device calls it: DEADLINE_EXCEEDED would look like the deadline of the call.
      ConnectFailedOnPoller(absl::UnavailableError(event.status.message()));
      break;
    case ConnectionEvent::Type::kDisconnected:
      if (state_ == State::kConnecting) {
        ConnectFailedOnPoller(event.status);
      } else if (endpoint_ != nullptr) {
        endpoint_->Break(event.status);
      }
      break;
    case ConnectionEvent::Type::kConnectRequest:
      LOG(DFATAL) << "a connection request on a channel that does not listen";
      break;
  }
}

void ClientConnection::EstablishedOnPoller(const ConnectionEvent& event) {
  absl::StatusOr<Hello> hello = DecodeHello(event.private_data.span());
  if (!hello.ok()) {
    ConnectFailedOnPoller(hello.status());
    return;
  }
  endpoint_->Open(*hello, Endpoint::Side::kConnecting);
  PublishMemoryOnPoller(endpoint_->memory());
  state_ = State::kReady;
  backoff_ns_ = 0;
  connects_.Add(1);
  TellWaitersOnPoller(absl::OkStatus());
  SendQueuedOnPoller();
}

void ClientConnection::ConnectFailedOnPoller(const absl::Status& why) {
  poller_->Bury(std::move(endpoint_));
  state_ = State::kBackoff;
  connect_error_ =
      absl::Status(why.code(), absl::StrCat("no connection to ", target_, ": ", why.message()));
  const int64_t min_ns = ToNs(options_.reconnect_backoff_min);
  const int64_t max_ns = std::max(min_ns, ToNs(options_.reconnect_backoff_max));
  backoff_ns_ = std::clamp(backoff_ns_ * 2, min_ns, max_ns);
  // Between half and all of it, so that the clients of a server that restarts spread out.
  const int64_t jittered_ns =
      backoff_ns_ / 2 + static_cast<int64_t>(random_.Below(backoff_ns_ / 2 + 1));
  retry_at_ns_ = poller_->NowNs() + jittered_ns;
  TellWaitersOnPoller(connect_error_);
  FailAllOnPoller(connect_error_, connect_error_);
}

// ---- The end of a connection ----

void ClientConnection::OnClosed(const absl::Status& why) {
  receiver_not_ready_.Add(endpoint_->queue_pair().counters().receiver_not_ready);
  payload_.End(endpoint_->payload_counters(), &payload_told_);
  if (endpoint_->peer_lost()) peers_lost_.Add(1);
  if (state_ == State::kConnecting) {  // Frames may come before the event does.
    ConnectFailedOnPoller(why);
    return;
  }
  PublishMemoryOnPoller(nullptr);
  poller_->Bury(std::move(endpoint_));
  state_ = State::kIdle;
  disconnects_.Add(1);
  cancels_waiting_.clear();
  const absl::StatusCode code =
      why.code() == absl::StatusCode::kInternal ? why.code() : absl::StatusCode::kUnavailable;
  const std::string lost = absl::StrCat("the connection to ", target_, " is lost: ", why.message());
  FailAllOnPoller(
      absl::Status(code, absl::StrCat(lost, "; the call was sent and may have run")),
      absl::Status(code, absl::StrCat(lost, "; the call was not sent and did not run")));
}

// ---- Memory for messages ----

void ClientConnection::PublishMemoryOnPoller(std::shared_ptr<ConnectionMemory> memory) {
  std::lock_guard lock(memory_mutex_);
  memory_domain_id_.store(memory != nullptr ? memory->domain_id() : 0, std::memory_order_release);
  memory_ = std::move(memory);
}

absl::StatusOr<Buffer> ClientConnection::TakeMessageMemory(size_t bytes) {
  std::shared_ptr<BlockPool> pool;
  {
    std::lock_guard lock(memory_mutex_);
    if (memory_ == nullptr) return absl::UnavailableError("the channel is not connected");
    pool = memory_->staging();
  }
  return pool->TakeWhole(bytes);
}

// ---- WaitForConnected ----

void ClientConnection::TellWaitersOnPoller(const absl::Status& status) {
  std::vector<BlockingWaiter*> waiters;
  waiters.swap(ready_waiters_);
  for (BlockingWaiter* waiter : waiters) {
    driver_ != nullptr ? driver_->AddOutstanding(-1) : void();
    waiter->Finish(status);
  }
}

void ClientConnection::WaitForReadyOnPoller(BlockingWaiter* waiter) {
  absl::Status status = EnsureConnectingOnPoller();
  if (!status.ok() || state_ == State::kReady) {
    waiter->Finish(status);
    return;
  }
  ready_waiters_.push_back(waiter);
  driver_->AddOutstanding(1);  // Somebody has to drive until the connection is made or refused.
}

absl::Status ClientConnection::WaitForConnected(std::chrono::milliseconds timeout) {
  if (!broken_.ok()) return broken_;
  if (driver_->HeldByThisThread()) {
    return absl::FailedPreconditionError("WaitForConnected inside a callback of the same channel");
  }
  struct Wait {
    ClientConnection* connection;
    BlockingWaiter waiter;
    BlockingWaiter withdrawn;
  } wait{this, {}, {}};
  driver_->Submit({[](void* argument) {
                     auto* wait = static_cast<Wait*>(argument);
                     wait->connection->WaitForReadyOnPoller(&wait->waiter);
                   },
                   &wait});
  const int64_t end_ns = clock_.NowNs() + ToNs(timeout);
  while (!wait.waiter.done()) {
    const int64_t left_ns = end_ns - clock_.NowNs();
    if (left_ns <= 0) break;
    wait.waiter.Wait(std::min(left_ns, kWaitBoundNs));
  }
  if (wait.waiter.done()) return wait.waiter.status();
  driver_->Submit({[](void* argument) {
                     auto* wait = static_cast<Wait*>(argument);
                     auto& waiters = wait->connection->ready_waiters_;
                     if (std::erase(waiters, &wait->waiter) > 0) {
                       wait->connection->driver_->AddOutstanding(-1);
                     }
                     wait->withdrawn.Finish(absl::OkStatus());
                   },
                   &wait});
  while (!wait.withdrawn.done()) wait.withdrawn.Wait(kWaitBoundNs);
  if (wait.waiter.done()) return wait.waiter.status();
  return absl::DeadlineExceededError(absl::StrCat("no connection to ", target_, " within ",
                                                  timeout.count(), " ms; it is still being tried"));
}

}  // namespace verbena
