// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/connect_attempt.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/base/event_fd.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/errors.h"

namespace verbena::rdma {
namespace {

// A call that may block for long, made by a thread that owns everything it needs.
template <class Result>
struct BlockingCall {
  UniqueFd done = MakeEventFd();  // Readable when the thread ends.
  Result result{};
  std::thread thread;  // Joined, or detached.
};

// Sets an eventfd when it goes, also when its thread was cancelled.
class SetAtEnd {
 public:
  explicit SetAtEnd(int fd) : fd_(fd) {}
  ~SetAtEnd() { SignalEventFd(fd_); }

 private:
  const int fd_;
};

template <class Result, class Function>
std::shared_ptr<BlockingCall<Result>> StartBlocking(Function function) {
  auto call = std::make_shared<BlockingCall<Result>>();
  call->thread = std::thread([call, function = std::move(function)]() mutable {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    pthread_setname_np(pthread_self(), "verbena-connect");
    const SetAtEnd end(call->done.get());
    call->result = function();
  });
  return call;
}

// rdma_connect(3), in which a thread of StartBlocking may be cancelled: it waits in write(2), which
// is a cancellation point (pthreads(7)), and librdmacm holds nothing meanwhile.
int ConnectCancellably(rdma_cm_id* id, rdma_conn_param* param) {
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  const int result = rdma_connect(id, param);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  return result;
}

// Gets the thread out of the kernel, where it holds the queue pair: to destroy that would wait
// until TCP gives up. A signal ends the kernel's wait, and that of pthread_cancel(3) needs no
// handler of ours.
void Interrupt(BlockingCall<int>& call) {
  constexpr int kBoundMs = 1000;  // Then it is no wait that a signal ends.
  pthread_cancel(call.thread.native_handle());
  pollfd done{.fd = call.done.get(), .events = POLLIN, .revents = 0};
  if (poll(&done, 1, kBoundMs) > 0) {
    call.thread.join();
  } else {
    call.thread.detach();
  }
}

// A server that is there says why it refuses. Without a word it may be that nobody listens at this
// address of the host, though somebody does at another, with the same port.
bool HasReason(const CmEvent& answer) {
  return std::ranges::any_of(answer.private_data.span(),
                             [](std::byte b) { return b != std::byte{0}; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectAttempt>> ConnectAttempt::Start(
    ConnectPlan plan, std::shared_ptr<ConnectResults> results) {
  UniqueFd cancel = MakeEventFd();
  if (!cancel) return absl::ResourceExhaustedError(Describe("eventfd", errno));
  std::unique_ptr<ConnectAttempt> self(
      new ConnectAttempt(std::move(plan), std::move(results), std::move(cancel)));
  try {
    self->thread_ = std::thread([attempt = self.get()] { attempt->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("no thread to connect with: ", error.what()));
  }
  return self;
}

ConnectAttempt::ConnectAttempt(ConnectPlan plan, std::shared_ptr<ConnectResults> results,
                               UniqueFd cancel)
    : plan_(std::move(plan)),
      results_(std::move(results)),
      cancel_(std::move(cancel)),
      deadline_(Clock::now() + plan_.options.timeout) {}

ConnectAttempt::~ConnectAttempt() {
  SignalEventFd(cancel_.get());
  if (thread_.joinable()) thread_.join();
}

void ConnectAttempt::Run() {
  pthread_setname_np(pthread_self(), "verbena-connect");
  ConnectResult result;
  result.ticket = plan_.ticket;
  result.status = RunSteps(&result);
  if (absl::IsCancelled(result.status)) return;
  results_->Push(std::move(result));
}

absl::Status ConnectAttempt::RunSteps(ConnectResult* result) {
  auto addresses = LookUpHost();
  if (!addresses.ok()) return addresses.status();
  absl::Status status = absl::UnavailableError("the host has no address");
  absl::Status first_refusal;
  CmEvent first_answer{};
  for (const SocketAddress& address : *addresses) {
    result->answer = {};
    status = TryOne(address, result);
    if (status.ok() || absl::IsCancelled(status)) return status;
    if (result->answer.type == RDMA_CM_EVENT_REJECTED) {
      if (IsRejectedByUser(result->answer) && HasReason(result->answer)) return status;
      if (first_refusal.ok()) {
        first_refusal = status;
        first_answer = result->answer;
      }
    }
    if (Clock::now() >= deadline_) break;
  }
  if (first_refusal.ok()) return status;
  // Of a host that is there, this says more than that another of its addresses leads nowhere.
  result->answer = first_answer;
  return first_refusal;
}

absl::Status ConnectAttempt::TryOne(const SocketAddress& address, ConnectResult* result) {
  if (absl::Status status = Resolve(address, &result->id); !status.ok()) return status;
  if (absl::Status status = Connect(result); !status.ok()) return status;
  if (absl::Status status = Await(result->id, &result->answer); !status.ok()) return status;
  // A queue pair that librdmacm does not manage: InfiniBand leaves the last step to us.
  const rdma_cm_event_type good =
      plan_.connect_blocks ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE;
  return result->answer.type == good ? absl::OkStatus() : EventError(result->answer);
}

absl::StatusOr<std::vector<SocketAddress>> ConnectAttempt::LookUpHost() {
  if (IsNumeric(plan_.address.host)) return LookUp(plan_.address);
  using Found = absl::StatusOr<std::vector<SocketAddress>>;
  auto call = StartBlocking<Found>([address = plan_.address] { return LookUp(address); });
  if (absl::Status status = WaitFor(call->done.get(), "the name servers"); !status.ok()) {
    call->thread.detach();
    return status;
  }
  call->thread.join();
  return std::move(call->result);
}

absl::Status ConnectAttempt::Resolve(const SocketAddress& address, CmId* id) {
  auto channel = MakeEventChannel();
  if (!channel.ok()) return channel.status();
  auto created = CmId::Create(*std::move(channel));
  if (!created.ok()) return created.status();
  SocketAddress to = address;
  const auto bound = std::min(Left(), kResolveTimeoutMax);
  int result =
      rdma_resolve_addr(created->get(), nullptr, to.get(), static_cast<int>(bound.count()));
  if (result != 0) return NoWay(address, "rdma_resolve_addr", ErrorOf(result));
  if (absl::Status s = Expect(*created, RDMA_CM_EVENT_ADDR_RESOLVED); !s.ok()) return s;
  if (created->device() != plan_.device) {
    return absl::UnavailableError(absl::StrCat(
        plan_.address.ToString(), " is reached by ", created->device(), ", and this channel uses ",
        plan_.device, ": give it the other device, or change the route"));
  }
  result = rdma_resolve_route(created->get(), static_cast<int>(Left().count()));
  if (result != 0) return NoWay(address, "rdma_resolve_route", ErrorOf(result));
  if (absl::Status s = Expect(*created, RDMA_CM_EVENT_ROUTE_RESOLVED); !s.ok()) return s;
  *id = *std::move(created);
  return absl::OkStatus();
}

absl::Status ConnectAttempt::NoWay(const SocketAddress& address, const char* call,
                                   int error) const {
  return absl::UnavailableError(absl::StrCat(
      "no RDMA device is on the way to ", plan_.address.ToString(),
      IsLoopback(address)
          ? ": an RDMA device serves no loopback address; give one of the device, or shm:NAME; "
          : "; ",
      Describe(call, error)));
}

absl::Status ConnectAttempt::Connect(ConnectResult* outcome) {
  // Owned by the call, which may outlive this attempt.
  struct Parameters {
    CmId id;
    PrivateData data;
    rdma_conn_param param{};
  };
  auto parameters = std::make_shared<Parameters>();
  parameters->data = plan_.options.private_data;
  parameters->param = {.private_data = parameters->data.bytes.data(),
                       .private_data_len = static_cast<uint8_t>(parameters->data.size),
                       .responder_resources = plan_.reads_in_flight_max,
                       .initiator_depth = plan_.reads_in_flight_max,
                       .flow_control = 1,
                       .retry_count = plan_.options.retries,
                       .rnr_retry_count = plan_.options.receiver_not_ready_retries,
                       .srq = 0,
                       .qp_num = plan_.queue_pair_number};
  parameters->id = std::move(outcome->id);
  const auto connect = [parameters] {
    const int returned = ConnectCancellably(parameters->id.get(), &parameters->param);
    return returned == 0 ? 0 : ErrorOf(returned);
  };
  int error = 0;
  if (plan_.connect_blocks) {
    auto call = StartBlocking<int>(connect);
    if (absl::Status status = WaitFor(call->done.get(), "the peer"); !status.ok()) {
      Interrupt(*call);
      return status;
    }
    call->thread.join();
    error = call->result;
  } else {
    error = connect();
  }
  outcome->id = std::move(parameters->id);
  if (error == 0) return absl::OkStatus();
  if (error == ECONNREFUSED) {  // The peer's answer, though it came by the call.
    outcome->answer = {.type = RDMA_CM_EVENT_REJECTED, .status = -error};
    return EventError(outcome->answer);
  }
  return absl::UnavailableError(
      absl::StrCat("the peer cannot be reached; ", Describe("rdma_connect", error)));
}

// ---- Waiting ----

std::chrono::milliseconds ConnectAttempt::Left() const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
  return std::max(left, milliseconds(1));
}

absl::Status ConnectAttempt::WaitFor(int fd, const char* what) {
  pollfd fds[] = {{.fd = fd, .events = POLLIN, .revents = 0},
                  {.fd = cancel_.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    const auto left = deadline_ - Clock::now();
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    const int count = poll(fds, std::size(fds), static_cast<int>(std::max<int64_t>(left_ms, 0)));
    if ((fds[1].revents & POLLIN) != 0) return absl::CancelledError("the attempt was given up");
    if ((fds[0].revents & POLLIN) != 0) return absl::OkStatus();
    if (count == 0 && left_ms <= 0) {
      return absl::UnavailableError(absl::StrCat("no answer from ", what,
                                                 " within the connect timeout of ",
                                                 plan_.options.timeout.count(), " ms"));
    }
  }
}

absl::Status ConnectAttempt::Await(const CmId& id, CmEvent* event) {
  while (!TakeEvent(*id.channel(), event)) {
    if (absl::Status status = WaitFor(id.channel()->fd, "the peer"); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ConnectAttempt::Expect(const CmId& id, rdma_cm_event_type type) {
  CmEvent event;
  if (absl::Status status = Await(id, &event); !status.ok()) return status;
  return event.type == type ? absl::OkStatus() : EventError(event);
}

}  // namespace verbena::rdma
