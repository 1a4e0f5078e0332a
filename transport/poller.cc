// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/poller.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace verbena {

Poller::Poller(Device& device, const Clock& clock)
    : device_(device),
      clock_(clock),
      tasks_(kTasksMax),
      timers_(clock.NowNs()),
      tend_timer_(this),
      look_timer_(this) {
  housekeeping_ticks_ = cycles_.NsToTicks(kHousekeepingNs);
}

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create(Device& device, uint32_t completions_max,
                                                       const Clock& clock,
                                                       std::shared_ptr<const void> device_owner) {
  std::unique_ptr<Poller> poller(new Poller(device, clock));
  poller->device_owner_ = std::move(device_owner);
  auto channel = device.CreateCompletionChannel();
  if (!channel.ok()) return channel.status();
  poller->channel_ = *std::move(channel);
  auto queue = device.CreateCompletionQueue(completions_max, poller->channel_.get());
  if (!queue.ok()) return queue.status();
  poller->completion_queue_ = *std::move(queue);
  auto manager = device.CreateConnectionManager();
  if (!manager.ok()) return manager.status();
  poller->connection_manager_ = *std::move(manager);
  return poller;
}

Poller::~Poller() {
  for (Grave& grave : graves_) Free(*grave.endpoint);
  graves_.clear();
  timers_.Cancel(&look_timer_);
  timers_.Cancel(&tend_timer_);
  CHECK(registrations_.empty()) << "an endpoint outlives its poller";
}

size_t Poller::RunOnce() {
  if (!service_list_.empty()) ServiceEndpoints();
  const size_t count = PollCompletions();
  for (size_t i = 0; i < count; ++i) Dispatch(completions_[i], /*batching=*/i + 1 < count);
  if (!going_on_.empty()) [[unlikely]]
    ContinueService();
  if (!service_list_.empty()) ServiceEndpoints();
  size_t work = count + RunTasks() + going_on_.size();
  if (++steps_ >= kStepsPerClock) {
    steps_ = 0;
    const uint64_t now = cycles_.ReadTicks();
    if (now >= next_housekeeping_) {
      next_housekeeping_ = now + housekeeping_ticks_;
      work += Housekeeping();
    }
  }
  return work;
}

size_t Poller::PollCompletions() {
  for (uint32_t polls = 0; polls < kPollsPerStep; ++polls) {
    const size_t count = completion_queue_->Poll(completions_);
    if (count != 0) {
      polled_since_suspicion_ += count;
      return count;
    }
  }
  if (!idle_list_.empty()) ServiceIdleEndpoints();
  return 0;
}

void Poller::Dispatch(const WorkCompletion& completion, bool batching) {
  const EndpointId id = WorkRequestId(completion.wr_id).endpoint();
  const Entry& entry = entries_[id.index];
  // Of an endpoint that is gone: devices drop these with the queue pair, but not all at once.
  if (entry.endpoint == nullptr || entry.generation != id.generation) return;
  WantService(entry.endpoint);
  entry.endpoint->batching = batching;
  entry.endpoint->OnCompletion(completion);
}

// After polling, so that what came waits for one piece of their work and not for two.
void Poller::ContinueService() {
  for (Endpoint* endpoint : going_on_) {
    endpoint->goes_on = false;
    WantService(endpoint);
  }
  going_on_.clear();
}

void Poller::ServiceEndpoints() {
  // Service may ask for more service; that is for the next step.
  std::swap(service_list_, servicing_);
  for (Endpoint* endpoint : servicing_) {
    endpoint->service_pending = false;
    endpoint->Service();
    if (endpoint->WantsIdleService()) WantIdleService(endpoint);
    if (endpoint->WantsService() && !endpoint->goes_on) [[unlikely]] {
      endpoint->goes_on = true;
      going_on_.push_back(endpoint);
    }
  }
  servicing_.clear();
}

void Poller::WantIdleService(Endpoint* endpoint) {
  if (endpoint->idle_service_pending) return;
  endpoint->idle_service_pending = true;
  idle_list_.push_back(endpoint);
}

void Poller::ServiceIdleEndpoints() {
  // One that fails tells the layer above, which may make another.
  std::swap(idle_list_, idling_);
  for (Endpoint* endpoint : idling_) {
    endpoint->idle_service_pending = false;
    endpoint->ServiceIdle();
  }
  idling_.clear();
}

size_t Poller::RunTasks() {
  size_t count = 0;
  PollerTask task;
  while (count < kBatch && tasks_.TryPop(&task)) {
    task.function(task.argument);
    ++count;
  }
  return count;
}

size_t Poller::Housekeeping() {
  size_t work = HandleConnectionEvents();
  work += timers_.Advance(clock_.NowNs(),
                          [](Timer* timer) { static_cast<PollerTimer*>(timer)->OnTimer(); });
  JudgePeersUnderLoad();
  work += CheckQueue();
  if (!graves_.empty()) FreeDrained();
  return work;
}

size_t Poller::HandleConnectionEvents() {
  size_t count = 0;
  ConnectionEvent event;
  while (connection_manager_->PollEvent(&event)) {
    ++count;
    if (event.type == ConnectionEvent::Type::kConnectRequest) {
      if (on_connect_request_) on_connect_request_(std::move(event.request));
      continue;  // Without a handler the request is destroyed, and so rejected.
    }
    auto found = registrations_.find(event.queue_pair);
    if (found == registrations_.end()) continue;
    WantService(found->second.endpoint);
    // A copy, because the handler may bury the endpoint and with it the registration.
    auto on_event = found->second.on_event;
    if (on_event) on_event(event);
  }
  return count;
}

// ---- Endpoints ----

absl::StatusOr<EndpointId> Poller::AllocateId() {
  if (free_indices_.empty()) {
    if (entries_.size() > 0xfffe) {
      return absl::ResourceExhaustedError("a poller takes 65,535 connections");
    }
    free_indices_.push_back(static_cast<uint16_t>(entries_.size()));
    entries_.emplace_back();
  }
  const uint16_t index = free_indices_.back();
  free_indices_.pop_back();
  return EndpointId{index, ++entries_[index].generation};
}

absl::StatusOr<std::unique_ptr<Endpoint>> Poller::CreateEndpoint(
    const EndpointOptions& options, Endpoint::Handler* handler,
    std::function<void(ConnectionEvent&)> on_event) {
  if (!broken_.ok()) return broken_;
  absl::StatusOr<EndpointId> id = AllocateId();
  if (!id.ok()) return id.status();
  auto endpoint =
      Endpoint::Create(device_, device_owner_, *completion_queue_, options, *id, *this, handler);
  if (!endpoint.ok()) {
    FreeId(*id);
    return endpoint.status();
  }
  entries_[id->index].endpoint = endpoint->get();
  registrations_[&(*endpoint)->queue_pair()] = {endpoint->get(), std::move(on_event)};
  service_list_.reserve(entries_.size());
  servicing_.reserve(entries_.size());
  idle_list_.reserve(entries_.size());
  idling_.reserve(entries_.size());
  going_on_.reserve(entries_.size());
  tended_.reserve(entries_.size());
  tending_.reserve(entries_.size());
  StartLooking(**endpoint);
  return endpoint;
}

void Poller::Bury(std::unique_ptr<Endpoint> endpoint) {
  endpoint->Detach();
  registrations_[&endpoint->queue_pair()].on_event = nullptr;
  Grave grave{std::move(endpoint), clock_.NowNs() + kCloseBoundNs};
  if (!grave.endpoint->is_closing()) BeginDrain(grave);
  graves_.push_back(std::move(grave));
}

void Poller::BeginDrain(Grave& grave) {
  grave.draining = true;
  grave.bound_ns = clock_.NowNs() + kDrainBoundNs;
  grave.endpoint->Fail(absl::CancelledError("the connection is over"));
  // Tells the peer, too: a device may flush only once the peer is known to send no more.
  connection_manager_->Disconnect(grave.endpoint->queue_pair());
}

bool Poller::IsDone(Grave& grave) {
  if (!grave.draining) {
    if (grave.endpoint->is_closing() && clock_.NowNs() < grave.bound_ns) return false;
    BeginDrain(grave);
  }
  // Of a broken queue nothing is to be expected.
  if (grave.endpoint->drained() || !broken_.ok()) return true;
  if (clock_.NowNs() < grave.bound_ns) return false;
  LOG(WARNING) << "a queue pair did not drain within a second; it is destroyed as it is";
  return true;
}

void Poller::FreeDrained() {
  std::erase_if(graves_, [&](Grave& grave) {
    if (!IsDone(grave)) return false;
    Free(*grave.endpoint);
    return true;
  });
}

void Poller::Free(Endpoint& endpoint) {
  if (endpoint.service_pending) std::erase(service_list_, &endpoint);
  if (endpoint.idle_service_pending) std::erase(idle_list_, &endpoint);
  if (endpoint.goes_on) std::erase(going_on_, &endpoint);
  std::erase(tended_, &endpoint);
  registrations_.erase(&endpoint.queue_pair());
  entries_[endpoint.id().index].endpoint = nullptr;
  FreeId(endpoint.id());
}

// ---- What endpoints ask for ----

void Poller::TendWithin(Endpoint* endpoint, int64_t interval_ns) {
  if (std::find(tended_.begin(), tended_.end(), endpoint) == tended_.end()) {
    tended_.push_back(endpoint);
  }
  const int64_t at_ns = clock_.NowNs() + interval_ns;
  if (tend_timer_.IsScheduled()) {
    if (tend_at_ns_ <= at_ns) return;
    timers_.Cancel(&tend_timer_);
  }
  tend_at_ns_ = at_ns;
  timers_.Schedule(&tend_timer_, at_ns);
}

void Poller::TendEndpoints() {
  std::swap(tended_, tending_);
  const int64_t now_ns = clock_.NowNs();
  for (Endpoint* endpoint : tending_) {
    const int64_t interval_ns = endpoint->Tend(now_ns);
    WantService(endpoint);
    if (interval_ns != 0) TendWithin(endpoint, interval_ns);
  }
  tending_.clear();
}

void Poller::RunInBackground(EndpointId id, std::function<Continuation()> work) {
  worker_.Run([this, id, work = std::move(work)] {
    Continuation then = work();
    std::lock_guard lock(background_mutex_);
    finished_.push_back({id, std::move(then)});
    const PollerTask task = {
        [](void* argument) { static_cast<Poller*>(argument)->RunContinuations(); }, this};
    if (submitter_) {
      submitter_(task);
    } else {
      while (!Submit(task)) std::this_thread::yield();
    }
  });
}

void Poller::RunContinuations() {
  std::vector<Finished> finished;
  {
    std::lock_guard lock(background_mutex_);
    finished.swap(finished_);
  }
  for (Finished& one : finished) {
    const Entry& entry = entries_[one.id.index];
    if (entry.endpoint == nullptr || entry.generation != one.id.generation) continue;
    one.then(*entry.endpoint);
    WantService(entry.endpoint);
  }
}

void Poller::set_submitter(std::function<void(PollerTask)> submitter) {
  std::lock_guard lock(background_mutex_);
  submitter_ = std::move(submitter);
}

// ---- Peers that may have vanished ----

void Poller::StartLooking(const Endpoint& endpoint) {
  const int64_t interval_ns = endpoint.look_interval_ns();
  if (interval_ns == 0) return;
  if (look_interval_ns_ == 0 || interval_ns < look_interval_ns_) look_interval_ns_ = interval_ns;
  if (look_timer_.IsScheduled()) return;
  next_look_ns_ = clock_.NowNs() + look_interval_ns_;
  timers_.Schedule(&look_timer_, next_look_ns_);
}

// A round over all endpoints takes one interval, in so many equal firings.
int64_t Poller::LookFirings() {
  if (std::exchange(slept_, false)) return 1;
  const size_t wanted = (endpoint_count() + kLooksPerFiring - 1) / kLooksPerFiring;
  return std::clamp<int64_t>(static_cast<int64_t>(wanted), 1,
                             std::max<int64_t>(1, look_interval_ns_ / kLookTimerMinNs));
}

void Poller::LookAtPeers() {
  const size_t count = endpoint_count();
  if (count == 0) return;  // The next endpoint starts it again.
  const int64_t now_ns = clock_.NowNs();
  const int64_t firings = LookFirings();
  size_t looks = (count + static_cast<size_t>(firings) - 1) / static_cast<size_t>(firings);
  for (size_t seen = 0; looks > 0 && seen < entries_.size(); ++seen) {
    look_cursor_ = look_cursor_ + 1 < entries_.size() ? look_cursor_ + 1 : 0;
    Endpoint* endpoint = entries_[look_cursor_].endpoint;
    if (endpoint == nullptr) continue;
    --looks;
    if (!endpoint->LookAtPeer(now_ns)) continue;
    WantIdleService(endpoint);
    polled_since_suspicion_ = 0;
  }
  const int64_t step_ns = look_interval_ns_ / firings;
  next_look_ns_ += step_ns;
  // After a stall: one look for all that were missed.
  if (next_look_ns_ <= now_ns) next_look_ns_ = now_ns + step_ns;
  timers_.Schedule(&look_timer_, next_look_ns_);
}

// A poller that never runs dry judges when it has polled as much as its queue can have held when
// the suspicion came up.
void Poller::JudgePeersUnderLoad() {
  if (idle_list_.empty() || polled_since_suspicion_ < completion_queue_->depth()) return;
  polled_since_suspicion_ = 0;
  ServiceIdleEndpoints();
}

// ---- A completion queue that breaks ----

size_t Poller::CheckQueue() {
  if (!broken_.ok()) return 0;
  const absl::Status why = arm_error_.ok() ? completion_queue_->status() : arm_error_;
  if (why.ok()) [[likely]]
    return 0;
  broken_ = absl::UnavailableError(
      absl::StrCat("the completion queue is broken: ", why.message(),
                   "; make a new channel, or start the server again, once the device is well"));
  LOG(ERROR) << "all connections of a poller end: " << broken_.message();
  // Whoever is told may bury its endpoint but can make no new one.
  for (const Entry& entry : entries_) {
    if (entry.endpoint != nullptr) entry.endpoint->Fail(broken_);
  }
  return 1;
}

// ---- Sleeping ----

void Poller::Arm() {
  // An error is dealt with in the next step. A sleep is bounded, so that nothing depends on this.
  if (broken_.ok()) arm_error_ = completion_queue_->Arm(/*solicited_only=*/false);
  slept_ = true;
  LookAtEverything();
}

int64_t Poller::SleepBoundNs() const {
  // Draining is noticed by completions, but its bound is a time.
  constexpr int64_t kIdleBoundNs = 1'000'000'000;
  constexpr int64_t kDrainingBoundNs = 1'000'000;
  const int64_t bound_ns = graves_.empty() ? kIdleBoundNs : kDrainingBoundNs;
  const int64_t timer_ns = timers_.NextDeadlineHintNs();
  if (timer_ns == TimerWheel::kNever) return bound_ns;
  return std::clamp<int64_t>(timer_ns - clock_.NowNs(), 0, bound_ns);
}

void Poller::Woken() {
  channel_->Drain();
  LookAtEverything();
}

}  // namespace verbena
