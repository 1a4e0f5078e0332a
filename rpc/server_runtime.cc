// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/server_runtime.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "glog/logging.h"
#include "verbena/rpc/blocking_waiter.h"
#include "verbena/rpc/device_choice.h"

namespace verbena {
namespace {

// How long connections get to say goodbye.
constexpr int64_t kCloseBoundNs = 1'000'000'000;
// How often a shutdown that waits for a handler says so.
constexpr int64_t kNagNs = 10'000'000'000;

// Runs `function` on the poller's thread and waits for it. Not from that thread.
template <class F>
void RunOn(PollerDriver& driver, F function) {
  struct Run {
    F* function;
    BlockingWaiter waiter;
  } run{&function, {}};
  driver.Submit({[](void* argument) {
                   auto* run = static_cast<Run*>(argument);
                   (*run->function)();
                   run->waiter.Finish(absl::OkStatus());
                 },
                 &run});
  while (!run.waiter.done()) run.waiter.Wait(/*bound_ns=*/100'000'000);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerRuntime>> ServerRuntime::Start(ServerOptions options) {
  std::unique_ptr<ServerRuntime> runtime(new ServerRuntime(std::move(options)));
  absl::Status status = runtime->Initialize();
  if (!status.ok()) {
    runtime->Shutdown(std::chrono::milliseconds(0));
    return status;
  }
  return runtime;
}

ServerRuntime::~ServerRuntime() { Shutdown(std::chrono::milliseconds(0)); }

absl::Status ServerRuntime::Validate() const {
  if (options_.addresses.empty()) {
    return absl::InvalidArgumentError(
        "the server has no address: call ServerBuilder::AddListeningPort first");
  }
  if (options_.poller_count < 1 || options_.poller_count > 256) {
    return absl::InvalidArgumentError(absl::StrCat("ServerOptions::poller_count is ",
                                                   options_.poller_count, ": it must be 1 to 256"));
  }
  if (options_.connections_max < 1 || options_.connections_max > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ServerOptions::connections_max is ", options_.connections_max, ": it must be 1 to 65535"));
  }
  return options_.endpoint.Validate();
}

absl::Status ServerRuntime::Initialize() {
  if (absl::Status status = Validate(); !status.ok()) return status;
  absl::StatusOr<MethodTable> methods = MethodTable::Build(options_.services);
  if (!methods.ok()) return methods.status();
  methods_ = *std::move(methods);
  std::vector<std::pair<Group*, Address>> places;
  for (const std::string& text : options_.addresses) {
    absl::StatusOr<Address> address = Address::Parse(text);
    if (!address.ok()) return address.status();
    absl::StatusOr<Group*> group = GroupFor(*address);
    if (!group.ok()) return group.status();
    places.emplace_back(*group, *std::move(address));
  }
  // Last, because connections come from the first Listen on, and look at all groups.
  for (const auto& [group, address] : places) {
    if (absl::Status status = Listen(*group, address); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<ServerRuntime::Group*> ServerRuntime::GroupFor(const Address& address) {
  auto device = ChooseDevice(options_.devices, address, AddressUse::kListen);
  if (!device.ok()) return device.status();
  for (const auto& group : groups_) {
    if (group->device == *device) return group.get();
  }
  auto group =
      std::make_unique<Group>((uint64_t{std::random_device{}()} << 32) | std::random_device{}());
  group->device = *std::move(device);
  for (uint32_t i = 0; i < options_.poller_count; ++i) {
    const int cpu =
        options_.poller_cpus.empty() ? -1 : options_.poller_cpus[i % options_.poller_cpus.size()];
    auto poller = ServerPoller::Create(group->device, options_, methods_, cpu);
    if (!poller.ok()) return poller.status();
    group->pollers.push_back(*std::move(poller));
  }
  groups_.push_back(std::move(group));
  return groups_.back().get();
}

absl::Status ServerRuntime::Listen(Group& group, const Address& address) {
  absl::Status result;
  ServerPoller& first = *group.pollers.front();
  RunOn(first.driver(), [&] {
    first.poller().set_on_connect_request(
        [this, &group](std::unique_ptr<ConnectionRequest> request) {
          OnConnectRequest(group, std::move(request));
        });
    auto listener = first.poller().connection_manager().Listen(address);
    if (!listener.ok()) {
      result = listener.status();
      return;
    }
    addresses_.push_back((*listener)->address());
    group.listeners.push_back(*std::move(listener));
  });
  return result;
}

void ServerRuntime::StopListening() {
  for (const auto& group : groups_) {
    if (group->pollers.empty()) continue;
    RunOn(group->pollers.front()->driver(), [&] { group->listeners.clear(); });
  }
}

// ---- Connections ----

void ServerRuntime::OnConnectRequest(Group& group, std::unique_ptr<ConnectionRequest> request) {
  absl::StatusOr<Hello> hello = DecodeHello(request->private_data().span());
  if (!hello.ok()) {
    LOG(WARNING) << "refused a connection: " << hello.status();
    const bool version = absl::IsFailedPrecondition(hello.status());
    Refuse(group, std::move(request),
           version ? Refusal::Reason::kVersion : Refusal::Reason::kMalformed, kWireVersion);
    return;
  }
  if (group.pollers.front()->shutting_down()) {
    Refuse(group, std::move(request), Refusal::Reason::kShuttingDown, 0);
    return;
  }
  uint64_t open = 0;
  // In this order: a connection that moves from one count to the other is seen at least once.
  ForEachPoller([&](const ServerPoller& poller) { open += poller.counters().accepting.load(); });
  ForEachPoller([&](const ServerPoller& poller) { open += poller.counters().connections.value(); });
  if (open >= options_.connections_max) {
    Refuse(group, std::move(request), Refusal::Reason::kConnections, options_.connections_max);
    return;
  }
  accepted_.fetch_add(1, std::memory_order_relaxed);
  ServerPoller& poller = *group.pollers[group.next_poller++ % group.pollers.size()];
  poller.AcceptLater(std::move(request), *hello, group.random.Next());
}

void ServerRuntime::Refuse(Group& group, std::unique_ptr<ConnectionRequest> request,
                           Refusal::Reason reason, uint32_t limit) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  absl::Status status = group.pollers.front()->poller().connection_manager().Reject(
      std::move(request), EncodeRefusal({.reason = reason, .limit = limit}));
  LOG_IF(WARNING, !status.ok()) << "a connection could not be refused: " << status;
}

// ---- The end ----

template <class F>
void ServerRuntime::ForEachPoller(F&& f) const {
  for (const auto& group : groups_) {
    for (const auto& poller : group->pollers) f(*poller);
  }
}

bool ServerRuntime::WaitForZero(SingleWriterCounter ServerPollerCounters::*counter,
                                int64_t bound_ns) const {
  const SystemClock clock;
  const int64_t start_ns = clock.NowNs();
  while (true) {
    uint64_t count = 0;
    ForEachPoller(
        [&](const ServerPoller& poller) { count += (poller.counters().*counter).value(); });
    if (count == 0) return true;
    if (clock.NowNs() - start_ns >= bound_ns) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

void ServerRuntime::Shutdown(std::chrono::milliseconds grace) {
  {
    std::unique_lock lock(mutex_);  // Another Shutdown may be swapping groups_ away.
    ForEachPoller([](ServerPoller& poller) {
      CHECK(!poller.driver().HeldByThisThread())
          << "Server::Shutdown inside a handler would wait for itself: call it from another thread";
    });
    if (shutting_down_) {
      finished_changed_.wait(lock, [this] { return finished_; });
      return;
    }
    shutting_down_ = true;
  }
  ForEachPoller([](ServerPoller& poller) { poller.RefuseCalls(); });
  StopListening();
  WaitForZero(&ServerPollerCounters::calls_in_flight, std::chrono::nanoseconds(grace).count());
  ForEachPoller([](ServerPoller& poller) { poller.CancelCalls(); });
  // Handlers use our memory, so there is no leaving before the last one; it was told to stop.
  while (!WaitForZero(&ServerPollerCounters::calls_in_flight, kNagNs)) {
    LOG(WARNING) << "shutting down, and waiting for handlers that ignore "
                    "ServerContext::IsCancelled()";
  }
  ForEachPoller([](ServerPoller& poller) { poller.CloseConnections(); });
  WaitForZero(&ServerPollerCounters::connections, kCloseBoundNs);
  std::vector<std::unique_ptr<Group>> ending;
  {
    std::lock_guard lock(mutex_);
    last_ = StatisticsLocked();
    ending.swap(groups_);
  }
  ending.clear();
  std::lock_guard lock(mutex_);
  last_.connections = 0;
  finished_ = true;
  finished_changed_.notify_all();
}

void ServerRuntime::Wait() {
  std::unique_lock lock(mutex_);
  finished_changed_.wait(lock, [this] { return finished_; });
}

ServerStatistics ServerRuntime::statistics() const {
  std::lock_guard lock(mutex_);
  return groups_.empty() ? last_ : StatisticsLocked();
}

ServerStatistics ServerRuntime::StatisticsLocked() const {
  ServerStatistics result;
  result.connections_accepted = accepted_.load();
  result.connections_refused = refused_.load();
  ForEachPoller([&](const ServerPoller& poller) {
    const ServerPollerCounters& counters = poller.counters();
    result.connections += counters.connections.value();
    result.calls_started += counters.calls.value();
    result.calls_in_flight += counters.calls_in_flight.value();
    result.calls_deadline_exceeded += counters.deadlines.value();
    result.protocol_errors += counters.protocol_errors.value();
    result.peers_lost += counters.peers_lost.value();
    result.receiver_not_ready += counters.receiver_not_ready.value();
    counters.payload.AddTo(&result);
  });
  return result;
}

}  // namespace verbena
