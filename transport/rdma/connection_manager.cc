// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/base/event_fd.h"
#include "verbena/transport/rdma/connection_manager_impl.h"
#include "verbena/transport/rdma/constants.h"
#include "verbena/transport/rdma/descriptors.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/queue_pair.h"
#include "verbena/transport/rdma/resolve.h"

namespace verbena::rdma {
namespace {

absl::Status CheckScheme(const Address& address) {
  if (address.scheme == "rdma") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an RDMA device serves rdma:HOST:PORT and not ", address.ToString()));
}

absl::Status ListenError(const Address& address, const char* call, int error) {
  const std::string text = absl::StrCat(address.ToString(), ": ", Describe(call, error));
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat("somebody listens there already: ", text));
  }
  if (error == EADDRNOTAVAIL || error == ENODEV) {
    return absl::InvalidArgumentError(
        absl::StrCat("no RDMA device of this host has this address: ", text));
  }
  return absl::ResourceExhaustedError(text);
}

// The kernel refuses to go on with a handshake that the peer has ended, whose event may be on its
// way still: CANCELLED.
absl::Status HandshakeError(const char* call, int error) {
  const std::string text = Describe(call, error);
  if (error == EINVAL || error == ECONNRESET) {
    return absl::CancelledError(absl::StrCat("the peer has given up meanwhile; ", text));
  }
  return absl::UnavailableError(text);
}

}  // namespace

RdmaConnectionRequest::~RdmaConnectionRequest() {
  if (id_) rdma_reject(id_.get(), nullptr, 0);
}

absl::StatusOr<std::unique_ptr<RdmaConnectionManager>> RdmaConnectionManager::Create(
    RdmaDevice* device) {
  std::unique_ptr<RdmaConnectionManager> self(new RdmaConnectionManager(device));
  if (absl::Status status = self->Initialize(); !status.ok()) return status;
  return self;
}

absl::Status RdmaConnectionManager::Initialize() {
  auto channel = MakeEventChannel();
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  UniqueFd event = MakeEventFd();
  channel_event_ = MakeEventFd();
  epoll_ = EpollOver({channel_event_.get(), event.get()});
  if (!event || !channel_event_ || !epoll_) {
    return absl::ResourceExhaustedError(Describe("eventfd, epoll", errno));
  }
  results_ = std::make_shared<ConnectResults>(std::move(event));
  return device_->Watch(channel_->fd, this);
}

void RdmaConnectionManager::OnReadable() {
  channel_readable_.store(true, std::memory_order_release);
  SignalEventFd(channel_event_.get());
}

RdmaConnectionManager::~RdmaConnectionManager() {
  if (channel_ != nullptr) device_->Unwatch(channel_->fd, this);
  for (auto& [pair, connection] : connections_) pair->set_manager(nullptr);
}

void RdmaConnectionManager::Erase(RdmaQueuePair* pair) {
  pair->set_manager(nullptr);
  connections_.erase(pair);
}

void RdmaConnectionManager::Forget(RdmaQueuePair* pair) {
  const auto found = connections_.find(pair);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.id && !connection.ended) rdma_disconnect(connection.id.get());
  connections_.erase(found);
}

void RdmaConnectionManager::OnEarlyReceive(RdmaQueuePair* pair) {
  const auto found = connections_.find(pair);
  if (found == connections_.end() || !found->second.id) return;
  // Fails when the message has come meanwhile. Else the event follows, as if it had.
  (void)rdma_notify(found->second.id.get(), IBV_EVENT_COMM_EST);
}

// ---- Listening ----

absl::StatusOr<std::unique_ptr<Listener>> RdmaConnectionManager::Listen(const Address& address) {
  if (absl::Status status = CheckScheme(address); !status.ok()) return status;
  const auto addresses = LookUp(address);
  if (!addresses.ok()) return absl::InvalidArgumentError(addresses.status().message());
  SocketAddress local = addresses->front();
  if (IsLoopback(local)) {
    return absl::InvalidArgumentError(
        absl::StrCat(address.ToString(),
                     " is not for this host alone: the RDMA connection manager would listen at "
                     "all addresses; give one of an RDMA device, or shm:NAME"));
  }
  auto id = CmId::Create(channel_);
  if (!id.ok()) return id.status();
  if (const int result = rdma_bind_addr(id->get(), local.get()); result != 0) {
    return ListenError(address, "rdma_bind_addr", ErrorOf(result));
  }
  // Unbound to a device: a wildcard address.
  if (const std::string owner = id->device();
      !owner.empty() && owner != device_->capabilities().device) {
    return absl::InvalidArgumentError(absl::StrCat(address.ToString(), " belongs to ", owner,
                                                   ", and this is ",
                                                   device_->capabilities().device));
  }
  if (const int result = rdma_listen(id->get(), kListenBacklog); result != 0) {
    return ListenError(address, "rdma_listen", ErrorOf(result));
  }
  Address bound = address;
  bound.port = ntohs(rdma_get_src_port(id->get()));
  return std::make_unique<RdmaListener>(*std::move(id), bound);
}

bool RdmaConnectionManager::HandleRequest(const CmEvent& taken, ConnectionEvent* event) {
  CmId id(taken.id, channel_);
  if (id.device() != device_->capabilities().device) {
    LOG_EVERY_N(WARNING, 100) << "a connection came by " << id.device() << ", and this is "
                              << device_->capabilities().device
                              << ": it is refused; listen on an address of each device";
    rdma_reject(id.get(), nullptr, 0);
    return false;
  }
  event->type = ConnectionEvent::Type::kConnectRequest;
  event->request = std::make_unique<RdmaConnectionRequest>(std::move(id), taken);
  return true;
}

absl::Status RdmaConnectionManager::Reject(std::unique_ptr<ConnectionRequest> request,
                                           const PrivateData& reason) {
  const CmId id = static_cast<RdmaConnectionRequest*>(request.get())->Spend();
  const int result = rdma_reject(id.get(), reason.bytes.data(), static_cast<uint8_t>(reason.size));
  if (result != 0) return absl::UnavailableError(Describe("rdma_reject", ErrorOf(result)));
  return absl::OkStatus();
}

// ---- Transitions ----

absl::Status RdmaConnectionManager::MakeReady(RdmaQueuePair& pair, CmId& id,
                                              const ConnectOptions& options) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    int mask = 0;
    if (const int result = rdma_init_qp_attr(id.get(), &attributes, &mask); result != 0) {
      return HandshakeError("rdma_init_qp_attr", ErrorOf(result));
    }
    if (state == IBV_QPS_INIT) {
      attributes.qp_access_flags |= device_->peer_rights();  // librdmacm leaves atomics out.
    }
    // librdmacm leaves the timer at 0, which is 655 ms, and sets an acknowledgement timeout of 2 s.
    if (state == IBV_QPS_RTR) attributes.min_rnr_timer = options.receiver_not_ready_timer;
    if (state == IBV_QPS_RTS) {
      attributes.timeout = options.acknowledgement_timeout;
      attributes.retry_cnt = options.retries;
      attributes.rnr_retry = options.receiver_not_ready_retries;
    }
    if (absl::Status status = pair.Modify(attributes, mask); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// ---- Connecting ----

absl::Status RdmaConnectionManager::Connect(QueuePair& queue_pair, const Address& address,
                                            const ConnectOptions& options) {
  if (absl::Status status = CheckScheme(address); !status.ok()) return status;
  auto& pair = static_cast<RdmaQueuePair&>(queue_pair);
  Connection connection;
  connection.ticket = ++last_ticket_;
  connection.options = options;
  auto attempt = ConnectAttempt::Start({.ticket = connection.ticket,
                                        .address = address,
                                        .options = options,
                                        .device = device_->capabilities().device,
                                        .queue_pair_number = pair.number(),
                                        .reads_in_flight_max = device_->reads_in_flight_max(),
                                        .connect_blocks = device_->is_iwarp()},
                                       results_);
  if (!attempt.ok()) return attempt.status();
  connection.attempt = *std::move(attempt);
  pair.set_manager(this);
  connections_[&pair] = std::move(connection);
  return absl::OkStatus();
}

bool RdmaConnectionManager::HandleResult(ConnectResult result, ConnectionEvent* event) {
  const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return entry.second.ticket == result.ticket;
  });
  if (found == connections_.end()) return false;  // Cancelled meanwhile; the id tells the peer.
  RdmaQueuePair* const pair = found->first;
  Connection& connection = found->second;
  connection.attempt.reset();
  event->queue_pair = pair;
  event->private_data = result.answer.private_data;
  event->status = result.status;
  if (event->status.ok()) event->status = FinishConnect(*pair, connection, result);
  if (event->status.ok()) {
    event->type = ConnectionEvent::Type::kEstablished;
  } else {
    event->type = result.answer.type == RDMA_CM_EVENT_REJECTED
                      ? ConnectionEvent::Type::kRejected
                      : ConnectionEvent::Type::kUnreachable;
    if (!IsRejectedByUser(result.answer)) event->private_data = {};  // Padding.
    Erase(pair);
  }
  return true;
}

absl::Status RdmaConnectionManager::FinishConnect(RdmaQueuePair& pair, Connection& connection,
                                                  ConnectResult& result) {
  connection.id = std::move(result.id);
  if (!device_->is_iwarp()) {
    absl::Status status = MakeReady(pair, connection.id, connection.options);
    if (!status.ok()) return absl::UnavailableError(status.message());
    if (const int established = rdma_establish(connection.id.get()); established != 0) {
      return absl::UnavailableError(Describe("rdma_establish", ErrorOf(established)));
    }
  }
  if (absl::Status status = connection.id.MigrateTo(channel_); !status.ok()) return status;
  pair.set_state(QueuePairState::kReadyToSend);
  return absl::OkStatus();
}

absl::Status RdmaConnectionManager::Accept(std::unique_ptr<ConnectionRequest> request,
                                           QueuePair& queue_pair, const ConnectOptions& options) {
  auto& asked = static_cast<RdmaConnectionRequest&>(*request);
  auto& pair = static_cast<RdmaQueuePair&>(queue_pair);
  CmId id = asked.Spend();
  if (absl::Status status = id.MigrateTo(channel_); !status.ok()) return status;
  if (!device_->is_iwarp()) {
    if (absl::Status status = MakeReady(pair, id, options); !status.ok()) return status;
  }
  const uint8_t reads_max = device_->reads_in_flight_max();
  rdma_conn_param param{
      .private_data = options.private_data.bytes.data(),
      .private_data_len = static_cast<uint8_t>(options.private_data.size),
      .responder_resources = std::min(asked.event().responder_resources, reads_max),
      .initiator_depth = std::min(asked.event().initiator_depth, reads_max),
      .flow_control = 1,
      .retry_count = options.retries,
      .rnr_retry_count = options.receiver_not_ready_retries,
      .srq = 0,
      .qp_num = pair.number()};
  if (const int result = rdma_accept(id.get(), &param); result != 0) {
    return HandshakeError("rdma_accept", ErrorOf(result));
  }
  pair.set_manager(this);
  Connection connection;
  connection.options = options;
  connection.id = std::move(id);
  connections_[&pair] = std::move(connection);
  return absl::OkStatus();
}

// ---- The end of a connection ----

void RdmaConnectionManager::Disconnect(QueuePair& queue_pair) {
  auto& pair = static_cast<RdmaQueuePair&>(queue_pair);
  pair.MoveToError();
  const auto found = connections_.find(&pair);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (!connection.id) {
    Erase(&pair);  // It connects still: given up.
  } else if (!std::exchange(connection.ended, true)) {
    rdma_disconnect(connection.id.get());
  }
}

// ---- Events ----

bool RdmaConnectionManager::PollEvent(ConnectionEvent* event) {
  *event = {};
  ConnectResult result;
  while (results_->Pop(&result)) {
    if (HandleResult(std::move(result), event)) return true;
  }
  if (!channel_readable_.load(std::memory_order_acquire)) return false;
  CmEvent taken;
  while (TakeEvent(*channel_, &taken)) {
    const bool told = taken.type == RDMA_CM_EVENT_CONNECT_REQUEST ? HandleRequest(taken, event)
                                                                  : HandleEvent(taken, event);
    if (told) return true;
  }
  // Empty. What comes from here on makes it readable anew; what came meanwhile is seen below.
  ClearEventFd(channel_event_.get());
  channel_readable_.store(false, std::memory_order_relaxed);
  pollfd left{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  if (poll(&left, 1, /*timeout=*/0) == 1) OnReadable();
  return false;
}

bool RdmaConnectionManager::HandleEvent(const CmEvent& taken, ConnectionEvent* event) {
  const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return entry.second.id.get() == taken.id;
  });
  if (found == connections_.end() || found->second.ended) return false;
  RdmaQueuePair* const pair = found->first;
  Connection& connection = found->second;
  event->queue_pair = pair;
  switch (taken.type) {
    case RDMA_CM_EVENT_ESTABLISHED:
      pair->set_state(QueuePairState::kReadyToSend);
      event->type = ConnectionEvent::Type::kEstablished;
      event->private_data = taken.private_data;
      return true;
    case RDMA_CM_EVENT_DISCONNECTED:
      rdma_disconnect(connection.id.get());  // Answers the peer, who waits for it.
      [[fallthrough]];
    case RDMA_CM_EVENT_REJECTED:  // The peer gave up while we accepted.
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      connection.ended = true;
      pair->MoveToError();
      event->type = ConnectionEvent::Type::kDisconnected;
      event->status = EventError(taken);
      return true;
    default:
      return false;  // The end of the time-wait state, address changes.
  }
}

}  // namespace verbena::rdma
