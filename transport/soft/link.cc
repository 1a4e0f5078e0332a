// SPDX-License-Identifier: Apache-2.0
//
// Messages of a link, its memory announcements and its end.

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/async_events.h"
#include "verbena/transport/soft/connection_manager_impl.h"
#include "verbena/transport/soft/constants.h"
#include "verbena/transport/soft/control_thread.h"
#include "verbena/transport/soft/key_table.h"
#include "verbena/transport/soft/protection_domain.h"
#include "verbena/transport/soft/queue_pair.h"
#include "verbena/transport/soft/socket.h"

namespace verbena::soft {
namespace {

// Messages taken from one link in a row, so that a chatty peer does not starve the others.
constexpr int kMessagesInARow = 64;

}  // namespace

void ControlThread::ReadLink(uint64_t id) {
  for (int i = 0; i < kMessagesInARow; ++i) {
    Link* link = Find(id);
    if (link == nullptr) return;
    ControlMessage message;
    std::vector<UniqueFd> descriptors;
    switch (ReceiveMessage(link->socket.get(), &message, &descriptors)) {
      case ReceiveResult::kMessage:
        HandleMessage(*link, message, &descriptors);
        break;
      case ReceiveResult::kNothing:
        return;
      case ReceiveResult::kClosed:
        EndLink(
            *link,
            absl::UnavailableError(link->state == LinkState::kAwaitReply
                                       ? absl::StrCat("the server at ", link->address.ToString(),
                                                      " closed the connection before it answered")
                                       : "the peer's process ended"),
            /*peer_gone=*/true);
        return;
      case ReceiveResult::kMalformed:
        EndLink(*link,
                absl::UnavailableError("the peer sent a malformed message, or more descriptors "
                                       "than this process may open (ulimit -n)"),
                /*peer_gone=*/false);
        return;
    }
  }
}

void ControlThread::HandleMessage(Link& link, const ControlMessage& message,
                                  std::vector<UniqueFd>* descriptors) {
  const LinkState state = link.state;
  if (state == LinkState::kAwaitRequest && message.type == MessageType::kRequest) {
    HandleRequest(link, message);
  } else if (state == LinkState::kAwaitReply && message.type == MessageType::kReply) {
    HandleReply(link, message, descriptors);
  } else if (state == LinkState::kAwaitReply && message.type == MessageType::kReject) {
    HandleReject(link, message);
  } else if (state == LinkState::kAwaitReady && message.type == MessageType::kReady) {
    HandleReady(link, message, descriptors);
  } else if (state == LinkState::kConnected && message.type == MessageType::kRegion) {
    HandleRegion(link, message, std::move(descriptors->front()));
  } else if (state == LinkState::kConnected && message.type == MessageType::kRegionGone) {
    HandleRegionGone(link, message);
  } else if (state == LinkState::kConnected && message.type == MessageType::kFault) {
    HandleFault(link, message);
  } else if (message.type == MessageType::kDisconnect) {
    // Its poller may still be inside a copy: not peer_gone.
    EndLink(link, absl::UnavailableError("the peer disconnected"), /*peer_gone=*/false);
  } else {
    EndLink(link, absl::UnavailableError("the peer sent an unexpected message"),
            /*peer_gone=*/false);
  }
}

void ControlThread::HandleRegion(Link& link, const ControlMessage& message,
                                 UniqueFd descriptor) {
  const uint64_t bytes = message.region_bytes;
  const bool possible = message.region != 0 && message.region < kKeysMax << 8 && bytes != 0 &&
                        bytes <= kPeerMappedBytesMax - link.peer_region_bytes &&
                        !link.peer_regions.contains(IndexOfKey(message.region));
  absl::Status status =
      possible ? CheckSealedMemory(descriptor.get(), bytes)
               : absl::ResourceExhaustedError("the peer announced more memory than it may");
  absl::StatusOr<Mapping> mapping;
  const bool writable = (message.flags & kMessageWritable) != 0;
  if (status.ok()) {
    mapping =
        Mapping::Shared(descriptor.get(), bytes, writable,
                        (message.flags & kMessagePrefaulted) != 0 && bytes <= kPopulateBytesMax);
    status = mapping.status();
  }
  if (!status.ok()) {
    EndLink(link, status, /*peer_gone=*/false);
    return;
  }
  link.peer_regions[IndexOfKey(message.region)] = bytes;
  link.peer_region_bytes += bytes;
  link.queue_pair->UpdateRegion({message.region, writable, *std::move(mapping)});
}

void ControlThread::HandleRegionGone(Link& link, const ControlMessage& message) {
  const auto found = link.peer_regions.find(IndexOfKey(message.region));
  if (found == link.peer_regions.end()) return;
  link.peer_region_bytes -= found->second;
  link.peer_regions.erase(found);
  link.queue_pair->UpdateRegion({message.region, false, {}});
}

void ControlThread::HandleFault(Link& link, const ControlMessage& message) {
  const auto type = message.reason == static_cast<uint16_t>(Fault::kAccess)
                        ? AsyncEvent::Type::kQueuePairAccessError
                        : AsyncEvent::Type::kQueuePairRequestError;
  if (link.queue_pair->state() == QueuePairState::kError) return;
  link.queue_pair->Fail(/*peer_gone=*/false);
  events_->Push({.type = type, .queue_pair_number = link.queue_pair->number()});
}

// Announcements ----------------------------------------------------------------------------------

void ControlThread::AnnounceRegion(SoftProtectionDomain* domain, const ControlMessage& announcement,
                                   int fd) {
  std::lock_guard lock(mutex_);
  announced_[domain][announcement.region] = {announcement, fd};
  for (const auto& [id, link] : links_) {
    if (link->state == LinkState::kConnected && &link->queue_pair->domain() == domain) {
      Send(*link, announcement, {&fd, 1});
    }
  }
}

void ControlThread::WithdrawRegionLocked(SoftProtectionDomain* domain, uint32_t key) {
  const auto found = announced_.find(domain);
  if (found == announced_.end() || found->second.erase(key) == 0) return;
  if (found->second.empty()) announced_.erase(found);
  ControlMessage gone;
  gone.type = MessageType::kRegionGone;
  gone.region = key;
  for (const auto& [id, link] : links_) {
    if (link->state != LinkState::kConnected || &link->queue_pair->domain() != domain) continue;
    const size_t unsent = std::erase_if(link->outbox, [&](const Outgoing& outgoing) {
      return outgoing.message.type == MessageType::kRegion && outgoing.message.region == key;
    });
    if (unsent == 0) Send(*link, gone, {});
  }
}

void ControlThread::AnnounceAll(Link& link) {
  const auto found = announced_.find(&link.queue_pair->domain());
  if (found == announced_.end()) return;
  for (const auto& [key, region] : found->second) Send(link, region.message, {&region.fd, 1});
}

void ControlThread::Send(Link& link, const ControlMessage& message,
                         std::span<const int> descriptors) {
  Outgoing outgoing{message, {}};
  std::copy(descriptors.begin(), descriptors.end(), outgoing.descriptors);
  link.outbox.push_back(outgoing);
  if (link.outbox.size() == 1) Flush(link);
}

void ControlThread::Flush(Link& link) {
  while (!link.outbox.empty()) {
    const Outgoing& outgoing = link.outbox.front();
    const int error = SendMessage(link.socket.get(), outgoing.message,
                                  {outgoing.descriptors, DescriptorsOf(outgoing.message.type)});
    if (IsTransient(error)) {
      attended_.insert(link.id);
      Wake();
      return;
    }
    if (error != 0) {
      link.outbox.clear();  // The peer is gone, which the socket will tell.
      break;
    }
    link.outbox.pop_front();
  }
  if (link.deadline == TimePoint::max()) attended_.erase(link.id);
}

// Ends -------------------------------------------------------------------------------------------

void ControlThread::PushEvent(Link& link, ConnectionEvent::Type type, const PrivateData& data,
                              absl::Status status) {
  if (link.manager == nullptr) return;
  ConnectionEvent event{};
  event.type = type;
  event.queue_pair = link.queue_pair;
  event.private_data = data;
  event.status = std::move(status);
  link.manager->Push(std::move(event));
}

void ControlThread::EndLink(Link& link, absl::Status why, bool peer_gone) {
  switch (link.state) {
    case LinkState::kConnecting:
    case LinkState::kAwaitReply: {
      // The queue pair stays in kInit and gave nothing away: it may try again.
      const bool late = absl::IsDeadlineExceeded(why);
      PushEvent(link, late ? ConnectionEvent::Type::kUnreachable : ConnectionEvent::Type::kRejected,
                {}, std::move(why));
      break;
    }
    case LinkState::kAwaitRequest:
      LOG_EVERY_N(WARNING, 100) << "a connection ended in its handshake: " << why.message();
      break;
    case LinkState::kAwaitDecision:
      break;  // Accept will find it gone.
    case LinkState::kAwaitReady:
    case LinkState::kConnected:
      link.queue_pair->Fail(peer_gone);
      PushEvent(link, ConnectionEvent::Type::kDisconnected, {}, std::move(why));
      break;
  }
  Erase(link);
}

void ControlThread::Disconnect(SoftQueuePair* queue_pair) {
  std::lock_guard lock(mutex_);
  queue_pair->Fail(/*peer_gone=*/false);
  const auto found = link_of_.find(queue_pair);
  if (found == link_of_.end()) return;
  Link& link = *Find(found->second);
  ControlMessage message;
  message.type = MessageType::kDisconnect;
  Send(link, message, {});
  Erase(link);
}

void ControlThread::FailQueuePair(SoftQueuePair* queue_pair) {
  std::lock_guard lock(mutex_);
  queue_pair->Fail(/*peer_gone=*/false);
}

void ControlThread::SendFault(SoftQueuePair* queue_pair, Fault fault) {
  std::lock_guard lock(mutex_);
  const auto found = link_of_.find(queue_pair);
  if (found == link_of_.end()) return;
  ControlMessage message;
  message.type = MessageType::kFault;
  message.reason = static_cast<uint16_t>(fault);
  Send(*Find(found->second), message, {});
}

void ControlThread::ForgetQueuePair(SoftQueuePair* queue_pair) {
  Disconnect(queue_pair);
  std::lock_guard lock(mutex_);
  for (SoftConnectionManager* manager : managers_) manager->Purge(queue_pair);
}

void ControlThread::AddManager(SoftConnectionManager* manager) {
  std::lock_guard lock(mutex_);
  managers_.insert(manager);
}

void ControlThread::ForgetManager(SoftConnectionManager* manager) {
  std::lock_guard lock(mutex_);
  managers_.erase(manager);
  for (const auto& [id, link] : links_) {
    if (link->manager == manager) link->manager = nullptr;
  }
  for (auto& [id, listening] : listeners_) {
    if (listening.manager == manager) listening.manager = nullptr;
  }
}

}  // namespace verbena::soft
