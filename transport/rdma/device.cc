// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/base/event_fd.h"
#include "verbena/transport/rdma/completion_channel.h"
#include "verbena/transport/rdma/completion_queue.h"
#include "verbena/transport/rdma/connection_manager_impl.h"
#include "verbena/transport/rdma/descriptors.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/probe.h"
#include "verbena/transport/rdma/protection_domain.h"
#include "verbena/transport/rdma/queue_pair.h"
#include "verbena/transport/rdma/shared_receive_queue.h"

namespace verbena::rdma {
namespace {

// What drivers call "a send of ours was answered with receiver-not-ready".
constexpr const char* kReceiverNotReadyCounters[] = {
    "rcvd_rnr_err",       // rxe
    "rnr_nak_retry_err",  // mlx5
};

std::string FindReceiverNotReadyFile(const ibv_device& device, uint8_t port) {
  for (const char* name : kReceiverNotReadyCounters) {
    std::string path = absl::StrCat(device.ibdev_path, "/ports/", port, "/hw_counters/", name);
    if (std::ifstream(path).good()) return path;
  }
  return {};
}

bool HasRoceV2(ibv_context* context, uint8_t port, int gid_count) {
  for (int index = 0; index < gid_count; ++index) {
    ibv_gid_entry entry;
    if (ibv_query_gid_ex(context, port, static_cast<uint32_t>(index), &entry, 0) == 0 &&
        entry.gid_type == IBV_GID_TYPE_ROCE_V2) {
      return true;
    }
  }
  return false;
}

std::string WireName(ibv_context* context, uint8_t port, const ibv_port_attr& attributes) {
  if (context->device->transport_type == IBV_TRANSPORT_IWARP) return "iwarp";
  if (attributes.link_layer != IBV_LINK_LAYER_ETHERNET) return "infiniband";
  return HasRoceV2(context, port, attributes.gid_tbl_len) ? "roce v2" : "roce v1";
}

}  // namespace

RdmaDevice::RdmaDevice(Context context, UniqueFd async_event, UniqueFd stop_event, UniqueFd epoll)
    : context_(std::move(context)),
      async_events_(std::move(async_event)),
      stop_event_(std::move(stop_event)),
      epoll_(std::move(epoll)) {}

absl::StatusOr<std::unique_ptr<RdmaDevice>> RdmaDevice::Open(ibv_device* verbs) {
  errno = 0;
  Context context(ibv_open_device(verbs));
  if (context == nullptr) {
    const int error = errno;
    const std::string text = rdma::Describe("ibv_open_device", error);
    return absl::UnavailableError(
        error == EACCES || error == EPERM
            ? absl::StrCat("no permission to open it: look at the rights of /dev/infiniband; ",
                           text)
            : absl::StrCat("it cannot be opened; in a container, is /dev/infiniband given to it? ",
                           text));
  }
  UniqueFd async_event = MakeEventFd();
  UniqueFd stop_event = MakeEventFd();
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!async_event || !stop_event || !epoll) {
    return absl::UnavailableError(rdma::Describe("eventfd, epoll", errno));
  }
  std::unique_ptr<RdmaDevice> self(new RdmaDevice(std::move(context), std::move(async_event),
                                                  std::move(stop_event), std::move(epoll)));
  if (absl::Status status = self->Describe(); !status.ok()) return status;
  if (absl::Status status = self->StartEventThread(); !status.ok()) return status;
  return self;
}

RdmaDevice::~RdmaDevice() {
  CHECK_EQ(pair_count_.load(), 0u) << "queue pairs outlive their device";
  if (event_thread_.joinable()) {
    SignalEventFd(stop_event_.get());
    event_thread_.join();
  }
}

// ---- What it can do ----

absl::Status RdmaDevice::Describe() {
  ibv_device_attr attributes;
  if (const int result = ibv_query_device(context_.get(), &attributes); result != 0) {
    return absl::UnavailableError(rdma::Describe("ibv_query_device", ErrorOf(result)));
  }
  is_iwarp_ = context_->device->transport_type == IBV_TRANSPORT_IWARP;
  Capabilities& can = capabilities_;
  can.device = ibv_get_device_name(context_->device);
  if (absl::Status status = DescribePorts(attributes); !status.ok()) return status;
  // iWARP (RFC 5040) has no immediate data, answers no error to the sender in time and knows no
  // receiver that is not ready: a SEND without a receive ends the connection (RFC 5041, 4.3).
  can.write_with_imm = !is_iwarp_;
  can.send_with_imm = !is_iwarp_;
  can.receiver_not_ready = !is_iwarp_;
  can.error_tells_sender = !is_iwarp_;
  can.connecting_side_sends_first = is_iwarp_;
  can.atomics = attributes.atomic_cap != IBV_ATOMIC_NONE;
  can.remote_access_to_user_memory = true;
  can.user_memory_receive_bytes_max = can.message_bytes_max;
  can.shared_receive_bytes_max = can.message_bytes_max;
  const auto limit = [](int value) { return static_cast<uint32_t>(std::max(value, 0)); };
  can.queue_pairs_max = std::min(limit(attributes.max_qp), WorkId::kOwnersMax);
  can.completion_queue_depth_max = limit(attributes.max_cqe);
  can.queue_depth_max = std::min(limit(attributes.max_qp_wr), can.completion_queue_depth_max);
  can.send_sge_max = can.recv_sge_max = limit(attributes.max_sge);
  can.read_sge_max = std::min(limit(attributes.max_sge_rd), can.send_sge_max);
  can.private_data_bytes_max = kPrivateDataBytesMax;
  reads_in_flight_max_ = static_cast<uint8_t>(std::clamp<int>(
      std::min(attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom), 1, kReadsInFlightMax));

  absl::StatusOr<Probed> probed =
      ProbeDevice(context_.get(), attributes, std::min(can.send_sge_max, kProbeSge), port_);
  if (!probed.ok()) return probed.status();
  can.inline_bytes_max = probed->inline_bytes_max;
  can.memory_windows = probed->memory_windows;
  can.send_with_invalidate = probed->memory_windows;
  can.shared_receive_queue = probed->shared_receive_queue;
  takes_empty_lists_ = probed->empty_receives;
  return absl::OkStatus();
}

// Queue pairs start on the first active port; a connection moves them to the port of its route.
absl::Status RdmaDevice::DescribePorts(const ibv_device_attr& attributes) {
  for (uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
    ibv_port_attr found;
    if (ibv_query_port(context_.get(), port, &found) != 0) continue;
    const bool active = found.state == IBV_PORT_ACTIVE;
    const bool better = capabilities_.wire.empty() || (active && !has_active_port_);
    if (!better) continue;
    port_ = port;
    has_active_port_ = active;
    capabilities_.wire = WireName(context_.get(), port, found);
    capabilities_.message_bytes_max = found.max_msg_sz;
  }
  if (capabilities_.wire.empty()) return absl::UnavailableError("it has no port");
  receiver_not_ready_file_ = FindReceiverNotReadyFile(*context_->device, port_);
  return absl::OkStatus();
}

uint64_t RdmaDevice::ReceiverNotReadyCount() const {
  if (receiver_not_ready_file_.empty()) return 0;
  std::ifstream file(receiver_not_ready_file_);
  uint64_t count = 0;
  return file >> count ? count : 0;
}

// ---- Making ----

absl::StatusOr<std::unique_ptr<ProtectionDomain>> RdmaDevice::AllocateProtectionDomain() {
  absl::StatusOr<std::unique_ptr<RdmaProtectionDomain>> domain = RdmaProtectionDomain::Create(this);
  if (!domain.ok()) return domain.status();
  return *std::move(domain);
}

absl::StatusOr<std::unique_ptr<CompletionChannel>> RdmaDevice::CreateCompletionChannel() {
  absl::StatusOr<std::unique_ptr<RdmaCompletionChannel>> channel =
      RdmaCompletionChannel::Create(context_.get());
  if (!channel.ok()) return channel.status();
  return *std::move(channel);
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> RdmaDevice::CreateCompletionQueue(
    uint32_t depth, CompletionChannel* channel) {
  if (depth == 0 || depth > capabilities_.completion_queue_depth_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a completion queue of ", capabilities_.device, " has 1 to completion_queue_depth_max, ",
        capabilities_.completion_queue_depth_max, ", entries and not ", depth));
  }
  absl::StatusOr<std::unique_ptr<RdmaCompletionQueue>> queue =
      RdmaCompletionQueue::Create(this, depth, static_cast<RdmaCompletionChannel*>(channel));
  if (!queue.ok()) return queue.status();
  return *std::move(queue);
}

absl::StatusOr<std::unique_ptr<ConnectionManager>> RdmaDevice::CreateConnectionManager() {
  absl::StatusOr<std::unique_ptr<RdmaConnectionManager>> manager =
      RdmaConnectionManager::Create(this);
  if (!manager.ok()) return manager.status();
  return *std::move(manager);
}

// ---- Objects by number ----

absl::Status RdmaDevice::CountPair() {
  if (pair_count_.fetch_add(1) < capabilities_.queue_pairs_max) return absl::OkStatus();
  pair_count_.fetch_sub(1);
  return absl::ResourceExhaustedError(absl::StrCat(capabilities_.device, " has queue_pairs_max, ",
                                                   capabilities_.queue_pairs_max, ", queue pairs"));
}

void RdmaDevice::AddPair(uint32_t number, RdmaQueuePair* pair) {
  std::lock_guard lock(mutex_);
  pairs_[number] = pair;
}

void RdmaDevice::DropPair(uint32_t number) {
  std::lock_guard lock(mutex_);
  pairs_.erase(number);
}

RdmaQueuePair* RdmaDevice::FindPair(uint32_t number) {
  std::lock_guard lock(mutex_);
  const auto found = pairs_.find(number);
  return found == pairs_.end() ? nullptr : found->second;
}

void RdmaDevice::AddQueue(RdmaCompletionQueue* queue) {
  std::lock_guard lock(mutex_);
  queues_.insert(queue);
}

void RdmaDevice::DropQueue(RdmaCompletionQueue* queue) {
  std::lock_guard lock(mutex_);
  queues_.erase(queue);
}

absl::StatusOr<uint32_t> RdmaDevice::AddSharedReceive(RdmaSharedReceiveQueue* queue) {
  for (uint32_t number = 0; number < kSharedReceiveQueuesMax; ++number) {
    RdmaSharedReceiveQueue* none = nullptr;
    if (shared_receives_[number].compare_exchange_strong(none, queue)) return number;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("a device takes ", kSharedReceiveQueuesMax, " shared receive queues at a time"));
}

void RdmaDevice::DropSharedReceive(uint32_t number, RdmaSharedReceiveQueue* queue) {
  RdmaSharedReceiveQueue* mine = queue;
  shared_receives_[number].compare_exchange_strong(mine, nullptr);
  // No event names a queue that is gone.
  async_events_.EraseIf([queue](const AsyncEvent& event) { return event.shared_receive == queue; });
}

// ---- Asynchronous events ----

absl::Status RdmaDevice::StartEventThread() {
  if (!MakeNonBlocking(context_->async_fd)) {
    return absl::UnavailableError(rdma::Describe("fcntl", errno));
  }
  // Told apart by the pointer: null stops, this device's own is its asynchronous events. By edges,
  // since the descriptor of a removed device reports an error for ever.
  epoll_event stop{.events = EPOLLIN, .data = {.ptr = nullptr}};
  epoll_event async{.events = EPOLLIN | EPOLLET, .data = {.ptr = this}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_event_.get(), &stop) != 0 ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, context_->async_fd, &async) != 0) {
    return absl::UnavailableError(rdma::Describe("epoll_ctl", errno));
  }
  event_thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "verbena-rdma-ev");
    TakeEvents();
  });
  return absl::OkStatus();
}

absl::Status RdmaDevice::Watch(int fd, RdmaConnectionManager* manager) {
  std::lock_guard lock(mutex_);
  epoll_event watched{.events = EPOLLIN | EPOLLET, .data = {.ptr = manager}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &watched) != 0) {
    return absl::ResourceExhaustedError(rdma::Describe("epoll_ctl", errno));
  }
  managers_.insert(manager);
  return absl::OkStatus();
}

void RdmaDevice::Unwatch(int fd, RdmaConnectionManager* manager) {
  std::lock_guard lock(mutex_);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  managers_.erase(manager);
}

void RdmaDevice::TakeEvents() {
  std::array<epoll_event, 16> ready;
  while (true) {
    const int count =
        epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), /*timeout=*/-1);
    for (int i = 0; i < count; ++i) {
      void* const source = ready[i].data.ptr;
      if (source == nullptr) return;
      if (source == this) {
        TakeAsyncEvents();
        continue;
      }
      // It may have gone since it was reported.
      std::lock_guard lock(mutex_);
      auto* const manager = static_cast<RdmaConnectionManager*>(source);
      if (managers_.contains(manager)) manager->OnReadable();
    }
  }
}

void RdmaDevice::TakeAsyncEvents() {
  ibv_async_event event;
  while (ibv_get_async_event(context_.get(), &event) == 0) {
    // Until the acknowledgement the object of the event cannot be destroyed.
    Handle(event);
    ibv_ack_async_event(&event);
  }
}

void RdmaDevice::Handle(const ibv_async_event& event) {
  AsyncEvent told{.type = static_cast<AsyncEvent::Type>(event.event_type)};
  const std::string_view device = capabilities_.device;
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR: {
      // The contexts of the objects are ours: see where each is made.
      auto* queue = static_cast<RdmaCompletionQueue*>(event.element.cq->cq_context);
      queue->MarkBroken(absl::UnavailableError(
          absl::StrCat("the completion queue of ", absl::string_view(device.data(), device.size()),
                       " was overrun or broke, and can't be used any more: make a new channel")));
      break;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR: {
      auto* pair = static_cast<RdmaQueuePair*>(event.element.qp->qp_context);
      if (pair == nullptr) return;
      pair->MarkError();
      told.queue_pair_number = event.element.qp->qp_num;
      break;
    }
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      told.shared_receive = static_cast<RdmaSharedReceiveQueue*>(event.element.srq->srq_context);
      break;
    case IBV_EVENT_DEVICE_FATAL:
      BreakAllQueues(absl::UnavailableError(absl::StrCat(
          capabilities_.device,
          " reported a fatal error or was removed: open it again when the driver has reset it")));
      break;
    case IBV_EVENT_PORT_ERR:
      LOG(WARNING) << "port " << event.element.port_num << " of " << device << " went down";
      break;
    case IBV_EVENT_PORT_ACTIVE:
      LOG(INFO) << "port " << event.element.port_num << " of " << device << " is up";
      break;
    default:
      return;  // Address changes, path migration and the like: nothing that we use.
  }
  PushAsyncEvent(told);
}

void RdmaDevice::BreakAllQueues(const absl::Status& why) {
  std::lock_guard lock(mutex_);
  for (RdmaCompletionQueue* queue : queues_) queue->MarkBroken(why);
}

void RdmaDevice::PushAsyncEvent(AsyncEvent event) {
  if (async_events_.size() >= kAsyncEventsMax) {
    LOG_EVERY_N(WARNING, 1000) << "an asynchronous event is dropped: nobody takes them";
    return;
  }
  async_events_.Push(event);
}

}  // namespace verbena::rdma
