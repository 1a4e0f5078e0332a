// SPDX-License-Identifier: Apache-2.0
//
// Listening, connecting, and the handshake of wire.h. Whoever can open the socket can send
// anything here; nothing waits for it longer than kHandshakeTimeout, and only
// kPendingRequestsMax sockets at a time are waited for.

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/connection_manager_impl.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/control_thread.h"
#include "verbena/transport/soft/protection_domain.h"
#include "verbena/transport/soft/queue_pair.h"
#include "verbena/transport/soft/socket.h"

namespace verbena::soft {
namespace {

using std::chrono::steady_clock;

// After accept(2) found no free descriptor: until something was closed, perhaps.
constexpr std::chrono::milliseconds kDescriptorPause{10};

PrivateData PrivateDataOf(const ControlMessage& message) {
  PrivateData data;
  data.size = message.private_data_bytes;
  std::copy_n(message.private_data, data.size, data.bytes.begin());
  return data;
}

void SetPrivateData(const PrivateData& data, ControlMessage* message) {
  message->private_data_bytes = static_cast<uint8_t>(data.size);
  std::copy_n(data.bytes.begin(), data.size, message->private_data);
}

absl::Status CheckOptions(const ConnectOptions& options) {
  if (options.private_data.size > kPrivateDataBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("private data has at most ", kPrivateDataBytesMax, " bytes"));
  }
  if (options.receiver_not_ready_retries > 7 || options.receiver_not_ready_timer > 31) {
    return absl::InvalidArgumentError(
        "receiver_not_ready_retries is 0 to 7, receiver_not_ready_timer 0 to 31");
  }
  return absl::OkStatus();
}

}  // namespace

// Server -----------------------------------------------------------------------------------------

absl::StatusOr<uint64_t> ControlThread::Listen(SoftConnectionManager* manager,
                                               const Address& address) {
  absl::StatusOr<UniqueFd> socket = ListenOn(address.host);
  if (!socket.ok()) return socket.status();
  std::lock_guard lock(mutex_);
  const uint64_t id = ++last_id_;
  absl::Status watched = Watch(socket->get(), id, EPOLLIN);
  if (!watched.ok()) return watched;
  listeners_[id] = {.socket = *std::move(socket), .manager = manager};
  return id;
}

void ControlThread::StopListening(uint64_t listener) {
  std::lock_guard lock(mutex_);
  if (listeners_.erase(listener) == 0) return;
  std::vector<Link*> unfinished;
  for (const auto& [id, link] : links_) {
    if (link->listener != listener) continue;
    link->listener = 0;
    if (link->state == LinkState::kAwaitRequest) unfinished.push_back(link.get());
  }
  for (Link* link : unfinished) Refuse(*link, RejectReason::kShutdown);
}

void ControlThread::AcceptSockets(uint64_t id, Listening& listening) {
  while (listening.pending < kPendingRequestsMax) {
    UniqueFd socket(
        accept4(listening.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        LOG_EVERY_N(WARNING, 100) << "clients wait: " << strerror(errno);
        Pause(id, listening, true);
        listening.resume_at = steady_clock::now() + kDescriptorPause;
      }
      return;
    }
    Link& link = CreateLink(LinkState::kAwaitRequest);
    link.socket = std::move(socket);
    link.manager = listening.manager;
    link.deadline = steady_clock::now() + kHandshakeTimeout;
    link.listener = id;
    ++listening.pending;
    const absl::Status user = CheckPeerUser(link.socket.get());
    if (!user.ok()) {
      LOG(WARNING) << "connection refused: " << user.message();
      Refuse(link, RejectReason::kUser);
    } else if (!Watch(link.socket.get(), link.id, EPOLLIN).ok()) {
      Refuse(link, RejectReason::kShutdown);
    }
  }
  Pause(id, listening, true);
}

void ControlThread::Pause(uint64_t id, Listening& listening, bool paused) {
  listening.resume_at = TimePoint::max();
  if (listening.paused == paused) return;
  listening.paused = paused;
  epoll_event event{};
  event.events = paused ? 0u : uint32_t{EPOLLIN};
  event.data.u64 = id;
  PCHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listening.socket.get(), &event) == 0);
}

void ControlThread::LeaveListener(Link& link) {
  const auto found = listeners_.find(std::exchange(link.listener, 0));
  if (found == listeners_.end()) return;
  --found->second.pending;
  if (found->second.paused && found->second.resume_at == TimePoint::max()) {
    Pause(found->first, found->second, false);
  }
}

void ControlThread::Refuse(Link& link, RejectReason reason) {
  ControlMessage message;
  message.type = MessageType::kReject;
  message.reason = static_cast<uint16_t>(reason);
  Send(link, message, {});
  Erase(link);
}

void ControlThread::HandleRequest(Link& link, const ControlMessage& message) {
  if (message.version != kWireVersion) {
    LOG(WARNING) << "a client speaks shm wire version " << message.version << " and we "
                 << kWireVersion;
    Refuse(link, RejectReason::kVersion);
    return;
  }
  if (link.manager == nullptr) {
    Refuse(link, RejectReason::kShutdown);
    return;
  }
  link.request = message;
  link.state = LinkState::kAwaitDecision;
  link.deadline = TimePoint::max();
  attended_.erase(link.id);
  ConnectionEvent event{};
  event.type = ConnectionEvent::Type::kConnectRequest;
  event.private_data = PrivateDataOf(message);
  event.request = std::make_unique<SoftConnectionRequest>(this, link.id, event.private_data);
  link.manager->Push(std::move(event));
}

absl::Status ControlThread::Accept(SoftConnectionManager* manager, uint64_t link_id,
                                   SoftQueuePair* queue_pair, const ConnectOptions& options) {
  absl::Status status = CheckOptions(options);
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  status = CheckQueuePair(queue_pair);
  if (!status.ok()) return status;
  Link* link = Find(link_id);
  if (link == nullptr) {
    queue_pair->Fail(/*peer_gone=*/true);
    ConnectionEvent event{};
    event.type = ConnectionEvent::Type::kDisconnected;
    event.queue_pair = queue_pair;
    event.status = absl::UnavailableError("the client gave up before it was accepted");
    manager->Push(std::move(event));
    return absl::OkStatus();
  }
  LeaveListener(*link);
  link->state = LinkState::kAwaitReady;
  link->manager = manager;
  link->queue_pair = queue_pair;
  link->options = options;
  link->deadline = steady_clock::now() + kHandshakeTimeout;
  link_of_[queue_pair] = link_id;
  attended_.insert(link_id);
  const int descriptors[] = {queue_pair->segment_fd(), queue_pair->event_fd(),
                             queue_pair->domain().keys().fd()};
  Send(*link, Introduction(MessageType::kReply, *queue_pair, options), descriptors);
  Wake();  // For the deadline.
  return absl::OkStatus();
}

void ControlThread::Reject(uint64_t link_id, const PrivateData& reason) {
  std::lock_guard lock(mutex_);
  Link* link = Find(link_id);
  if (link == nullptr) return;
  ControlMessage message;
  message.type = MessageType::kReject;
  message.reason = static_cast<uint16_t>(RejectReason::kByApplication);
  SetPrivateData(reason, &message);
  Send(*link, message, {});
  Erase(*link);
}

void ControlThread::HandleReady(Link& link, const ControlMessage& message,
                                std::vector<UniqueFd>* descriptors) {
  const absl::Status status = Establish(link, link.request, message.slots, descriptors);
  if (!status.ok()) {
    EndLink(link, status, /*peer_gone=*/false);
    return;
  }
  PushEvent(link, ConnectionEvent::Type::kEstablished, PrivateDataOf(link.request), {});
}

// Client -----------------------------------------------------------------------------------------

absl::Status ControlThread::Connect(SoftConnectionManager* manager, SoftQueuePair* queue_pair,
                                    const Address& address, const ConnectOptions& options) {
  absl::Status status = CheckOptions(options);
  if (!status.ok()) return status;
  {
    std::lock_guard lock(mutex_);
    status = CheckQueuePair(queue_pair);
    if (!status.ok()) return status;
    absl::StatusOr<UniqueFd> socket = CreateSocket();
    if (!socket.ok()) return socket.status();
    Link& link = CreateLink(LinkState::kConnecting);
    link.socket = *std::move(socket);
    link.manager = manager;
    link.queue_pair = queue_pair;
    link.address = address;
    link.options = options;
    link.deadline = steady_clock::now() + options.timeout;
    link_of_[queue_pair] = link.id;
    TryConnect(link);
  }
  Wake();  // For the deadline.
  return absl::OkStatus();
}

void ControlThread::TryConnect(Link& link) {
  const int error = ConnectTo(link.socket.get(), link.address.host);
  if (error == EAGAIN || error == EINTR) return;  // The backlog is full; Attend repeats.
  const std::string name = link.address.ToString();
  if (error != 0) {
    EndLink(link,
            error == ECONNREFUSED
                ? absl::UnavailableError(
                      absl::StrCat("no server listens at ", name, "; start it or check the name"))
                : absl::UnavailableError(absl::StrCat("connect to ", name, ": ", strerror(error))),
            /*peer_gone=*/false);
    return;
  }
  absl::Status status = CheckPeerUser(link.socket.get());
  if (status.ok()) status = Watch(link.socket.get(), link.id, EPOLLIN);
  if (!status.ok()) {
    EndLink(link, status, /*peer_gone=*/false);
    return;
  }
  link.state = LinkState::kAwaitReply;
  Send(link, Introduction(MessageType::kRequest, *link.queue_pair, link.options), {});
}

void ControlThread::HandleReply(Link& link, const ControlMessage& message,
                                std::vector<UniqueFd>* descriptors) {
  absl::Status status = message.version == kWireVersion
                            ? Establish(link, message, message.slots, descriptors)
                            : absl::FailedPreconditionError("the server's wire version differs");
  if (!status.ok()) {
    link.state = LinkState::kAwaitReply;  // Connect ends in kRejected.
    EndLink(link, status, /*peer_gone=*/false);
    return;
  }
  PushEvent(link, ConnectionEvent::Type::kEstablished, PrivateDataOf(message), {});
}

void ControlThread::HandleReject(Link& link, const ControlMessage& message) {
  absl::Status status;
  switch (static_cast<RejectReason>(message.reason)) {
    case RejectReason::kVersion:
      status = absl::FailedPreconditionError(absl::StrCat("the server speaks shm wire version ",
                                                          message.version, " and we ", kWireVersion,
                                                          "; update the older of the two"));
      break;
    case RejectReason::kUser:
      status = absl::PermissionDeniedError(
          absl::StrCat("the server at ", link.address.ToString(),
                       " runs as another user and serves only its own"));
      break;
    case RejectReason::kShutdown:
      status = absl::UnavailableError(
          absl::StrCat("the server at ", link.address.ToString(), " stops listening"));
      break;
    default:
      status = absl::UnavailableError(
          absl::StrCat("the server at ", link.address.ToString(),
                       " rejected the connection; its private data may say why"));
      break;
  }
  PushEvent(link, ConnectionEvent::Type::kRejected, PrivateDataOf(message), std::move(status));
  Erase(link);
}

// Both -------------------------------------------------------------------------------------------

absl::Status ControlThread::CheckQueuePair(const SoftQueuePair* queue_pair) const {
  if (queue_pair->state() != QueuePairState::kInit ||
      link_of_.contains(const_cast<SoftQueuePair*>(queue_pair))) {
    return absl::FailedPreconditionError(
        "the queue pair has been connected before; create a new one");
  }
  return absl::OkStatus();
}

ControlMessage ControlThread::Introduction(MessageType type, const SoftQueuePair& queue_pair,
                                           const ConnectOptions& options) const {
  ControlMessage message;
  message.type = type;
  message.flags = membarrier_ ? kMessageMembarrier : 0;
  message.queue_pair = queue_pair.number();
  message.slots = queue_pair.slots();
  message.receiver_not_ready_timer = options.receiver_not_ready_timer;
  SetPrivateData(options.private_data, &message);
  return message;
}

// `about`: the peer's kRequest or kReply.
absl::Status ControlThread::Establish(Link& link, const ControlMessage& about, uint32_t slots,
                                      std::vector<UniqueFd>* descriptors) {
  if (!SegmentLayout::IsValid(slots) || about.queue_pair == 0) {
    return absl::InvalidArgumentError("the peer's segment has an impossible size");
  }
  const size_t bytes = SegmentLayout(slots).bytes;
  const int segment = (*descriptors)[0].get();
  const int keys = (*descriptors)[2].get();
  absl::Status status = CheckSealedMemory(segment, bytes);
  if (status.ok()) status = CheckEvent((*descriptors)[1].get());
  if (status.ok()) status = CheckSealedMemory(keys, KeyTable::kBytes);
  if (!status.ok()) return status;

  PeerResources peer;
  absl::StatusOr<Mapping> mapping = Mapping::Shared(segment, bytes, /*writable=*/true);
  if (!mapping.ok()) return mapping.status();
  peer.segment = *std::move(mapping);
  mapping = Mapping::Shared(keys, KeyTable::kBytes, /*writable=*/false);
  if (!mapping.ok()) return mapping.status();
  peer.keys = *std::move(mapping);
  peer.slots = slots;
  peer.event = std::move((*descriptors)[1]);
  peer.queue_pair = about.queue_pair;
  peer.receiver_not_ready_timer = about.receiver_not_ready_timer;
  peer.fence = !membarrier_ || (about.flags & kMessageMembarrier) == 0;
  SoftQueuePair& queue_pair = *link.queue_pair;
  if (link.state == LinkState::kAwaitReply) {
    // Before our first send can reach it, so that the server's control thread runs early.
    ControlMessage ready;
    ready.type = MessageType::kReady;
    ready.slots = queue_pair.slots();
    const int ours[] = {queue_pair.segment_fd(), queue_pair.event_fd(),
                        queue_pair.domain().keys().fd()};
    Send(link, ready, ours);
  }
  link.state = LinkState::kConnected;
  link.deadline = TimePoint::max();
  AnnounceAll(link);
  if (link.outbox.empty()) attended_.erase(link.id);
  if (!queue_pair.Establish(std::move(peer), link.options.receiver_not_ready_retries)) {
    return absl::FailedPreconditionError("the queue pair was moved to kError while it connected");
  }
  return absl::OkStatus();
}

}  // namespace verbena::soft
