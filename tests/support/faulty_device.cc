// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/support/faulty_device.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace verbena {
namespace {

class FaultyCompletionQueue;

// A send that is on its way for long, with what its pointers pointed at.
struct HeldSend {
  SendWorkRequest request;
  std::vector<ScatterGatherEntry> pieces;
  std::vector<std::byte> inline_bytes;
};

HeldSend Hold(const SendWorkRequest& request) {
  HeldSend held;
  held.request = request;
  held.pieces.assign(request.sg_list.begin(), request.sg_list.end());
  if ((request.flags & kSendInline) != 0) {
    for (const ScatterGatherEntry& piece : held.pieces) {
      const auto* bytes = reinterpret_cast<const std::byte*>(piece.address);
      held.inline_bytes.insert(held.inline_bytes.end(), bytes, bytes + piece.length);
    }
    held.pieces = {{0, static_cast<uint32_t>(held.inline_bytes.size()), LocalKey{}}};
  }
  return held;
}

}  // namespace

class FaultyQueuePair final : public QueuePair {
 public:
  FaultyQueuePair(FaultyDevice& device, std::unique_ptr<QueuePair> behind,
                  FaultyCompletionQueue& queue, uint32_t send_depth);
  ~FaultyQueuePair() override;

  absl::Status PostSend(std::span<const SendWorkRequest> requests, size_t* accepted) override {
    Release();
    size_t count = 0;
    absl::Status status;
    for (const SendWorkRequest& request : requests) {
      if (in_send_queue_.size() == send_depth_) {
        device_.CountRefusal();
        status = absl::ResourceExhaustedError("the send queue is full");
        break;
      }
      device_.CountPost(request.opcode);
      if (state() != QueuePairState::kError && (IsHeld(request) || HoldsWhatIsBehind())) {
        held_.push_back(Hold(request));
      } else if (status = behind_->PostSend({&request, 1}, nullptr); !status.ok()) {
        break;
      }
      in_send_queue_.push_back(request.wr_id);
      ++count;
    }
    if (accepted != nullptr) *accepted = count;
    return status;
  }
  absl::Status PostRecv(std::span<const RecvWorkRequest> requests, size_t* accepted) override {
    return behind_->PostRecv(requests, accepted);
  }
  QueuePairState state() const override { return behind_->state(); }
  void MoveToError() override;
  uint32_t number() const override { return behind_->number(); }
  QueuePairCounters counters() const override { return behind_->counters(); }

  QueuePair& behind() { return *behind_; }
  void Polled(const WorkCompletion& completion) {
    const auto found = std::find(in_send_queue_.begin(), in_send_queue_.end(), completion.wr_id);
    if (found != in_send_queue_.end()) in_send_queue_.erase(in_send_queue_.begin(), found + 1);
  }
  void Lose(const WorkCompletion& completion) { lost_.push_back(completion); }
  // Sends what need not be held any more.
  void Release() {
    while (!held_.empty() && !IsHeld(held_.front().request)) {
      HeldSend& held = held_.front();
      if (!held.inline_bytes.empty()) {
        held.pieces[0].address = reinterpret_cast<uint64_t>(held.inline_bytes.data());
      }
      held.request.sg_list = held.pieces;
      (void)behind_->PostSend({&held.request, 1}, nullptr);
      held_.pop_front();
    }
  }

 private:
  bool IsHeld(const SendWorkRequest& request) const {
    return device_.holds_sends() || (IsOneSided(request) && device_.one_sided_held());
  }
  static bool IsOneSided(const SendWorkRequest& request) {
    return request.opcode == Opcode::kRead || request.opcode == Opcode::kWrite;
  }
  bool HoldsWhatIsBehind() const { return !held_.empty() && !IsOneSided(held_.front().request); }

  FaultyDevice& device_;
  const std::unique_ptr<QueuePair> behind_;
  FaultyCompletionQueue& queue_;
  const uint32_t send_depth_;
  std::deque<uint64_t> in_send_queue_;  // Ids of work requests; those of receives differ.
  std::deque<HeldSend> held_;
  std::vector<WorkCompletion> lost_;
};

namespace {

class FaultyCompletionQueue final : public CompletionQueue {
 public:
  FaultyCompletionQueue(FaultyDevice& device, std::unique_ptr<CompletionQueue> behind)
      : device_(device), behind_(std::move(behind)) {}

  size_t Poll(std::span<WorkCompletion> completions) override {
    if (device_.queues_broken()) return 0;
    for (FaultyQueuePair* pair : pairs_) pair->Release();
    size_t count = 0;
    for (; count < completions.size() && !flushed_.empty(); ++count) {
      completions[count] = flushed_.front();
      flushed_.pop_front();
    }
    const size_t first = count;
    const size_t polled = behind_->Poll(completions.subspan(count));
    for (size_t i = first; i < first + polled; ++i) {
      const WorkCompletion& completion = completions[i];
      FaultyQueuePair* pair = device_.FindByNumber(completion.queue_pair_number);
      if (device_.network_lost() && pair != nullptr &&
          completion.status == CompletionStatus::kSuccess) {
        pair->Lose(completion);
      } else {
        if (pair != nullptr) pair->Polled(completion);
        completions[count++] = completion;
      }
    }
    return count;
  }
  absl::Status Arm(bool solicited_only) override {
    if (device_.queues_broken() || device_.arming_broken()) {
      return absl::InternalError("the test broke it");
    }
    return behind_->Arm(solicited_only);
  }
  uint32_t depth() const override { return behind_->depth(); }
  absl::Status status() const override {
    return device_.queues_broken() ? absl::InternalError("the test broke it") : absl::OkStatus();
  }

  CompletionQueue* behind() { return behind_.get(); }
  void Add(FaultyQueuePair* pair) { pairs_.push_back(pair); }
  void Remove(FaultyQueuePair* pair) {
    std::erase(pairs_, pair);
    std::erase_if(flushed_, [pair](const WorkCompletion& completion) {
      return completion.queue_pair_number == pair->number();
    });
  }
  void Flush(uint64_t wr_id, uint32_t queue_pair_number) {
    flushed_.push_back({.wr_id = wr_id,
                        .status = CompletionStatus::kFlushed,
                        .opcode = CompletionOpcode::kSend,
                        .vendor_error = 0,
                        .byte_length = 0,
                        .imm_data = 0,
                        .queue_pair_number = queue_pair_number,
                        .flags = 0});
  }

 private:
  FaultyDevice& device_;
  const std::unique_ptr<CompletionQueue> behind_;
  std::vector<FaultyQueuePair*> pairs_;
  std::deque<WorkCompletion> flushed_;
};

class FaultyProtectionDomain final : public ProtectionDomain {
 public:
  FaultyProtectionDomain(FaultyDevice& device, std::unique_ptr<ProtectionDomain> behind)
      : device_(device), behind_(std::move(behind)) {}

  absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(void* address, size_t bytes,
                                                               AccessFlags access) override {
    return behind_->RegisterMemory(address, bytes, access);
  }
  absl::StatusOr<std::unique_ptr<MemoryRegion>> AllocateMemory(size_t bytes, AccessFlags access,
                                                               bool prefault) override {
    return behind_->AllocateMemory(bytes, access, prefault);
  }
  absl::StatusOr<std::unique_ptr<MemoryWindow>> AllocateWindow() override {
    return behind_->AllocateWindow();
  }
  // One queue for both kinds of completions.
  absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(
      const QueuePairOptions& options) override {
    auto& queue = static_cast<FaultyCompletionQueue&>(*options.send_queue);
    QueuePairOptions behind = options;
    behind.send_queue = behind.recv_queue = queue.behind();
    auto pair = behind_->CreateQueuePair(behind);
    if (!pair.ok()) return pair.status();
    return std::make_unique<FaultyQueuePair>(device_, *std::move(pair), queue, options.send_depth);
  }
  absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(
      const SharedReceiveQueueOptions& options) override {
    return behind_->CreateSharedReceiveQueue(options);
  }

 private:
  FaultyDevice& device_;
  const std::unique_ptr<ProtectionDomain> behind_;
};

class FaultyConnectionManager final : public ConnectionManager {
 public:
  FaultyConnectionManager(FaultyDevice& device, std::unique_ptr<ConnectionManager> behind)
      : device_(device), behind_(std::move(behind)) {}

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const Address& address) override {
    return behind_->Listen(address);
  }
  absl::Status Connect(QueuePair& pair, const Address& address,
                       const ConnectOptions& options) override {
    if (!device_.network_lost()) return behind_->Connect(Behind(pair), address, options);
    unreachable_.push_back({&Behind(pair), std::chrono::steady_clock::now() + options.timeout});
    return absl::OkStatus();
  }
  absl::Status Accept(std::unique_ptr<ConnectionRequest> request, QueuePair& pair,
                      const ConnectOptions& options) override {
    return behind_->Accept(std::move(request), Behind(pair), options);
  }
  absl::Status Reject(std::unique_ptr<ConnectionRequest> request,
                      const PrivateData& reason) override {
    return behind_->Reject(std::move(request), reason);
  }
  void Disconnect(QueuePair& pair) override { behind_->Disconnect(Behind(pair)); }

  bool PollEvent(ConnectionEvent* event) override {
    while (behind_->PollEvent(event)) {
      if (device_.network_lost()) continue;
      if (event->queue_pair != nullptr) {
        FaultyQueuePair* pair = device_.Find(event->queue_pair);
        if (pair == nullptr) continue;
        event->queue_pair = pair;
      }
      return true;
    }
    while (!unreachable_.empty() &&
           std::chrono::steady_clock::now() >= unreachable_.front().second) {
      FaultyQueuePair* pair = device_.Find(unreachable_.front().first);
      unreachable_.pop_front();
      if (pair == nullptr) continue;  // It was given up before.
      *event = {};
      event->type = ConnectionEvent::Type::kUnreachable;
      event->queue_pair = pair;
      event->status = absl::UnavailableError("no answer in time");
      return true;
    }
    return false;
  }
  int fd() const override { return behind_->fd(); }

 private:
  static QueuePair& Behind(QueuePair& pair) { return static_cast<FaultyQueuePair&>(pair).behind(); }

  FaultyDevice& device_;
  const std::unique_ptr<ConnectionManager> behind_;
  std::deque<std::pair<QueuePair*, std::chrono::steady_clock::time_point>> unreachable_;
};

}  // namespace

// ---- FaultyQueuePair ----

FaultyQueuePair::FaultyQueuePair(FaultyDevice& device, std::unique_ptr<QueuePair> behind,
                                 FaultyCompletionQueue& queue, uint32_t send_depth)
    : device_(device), behind_(std::move(behind)), queue_(queue), send_depth_(send_depth) {
  device_.Add(behind_.get(), this);
  queue_.Add(this);
}

FaultyQueuePair::~FaultyQueuePair() {
  queue_.Remove(this);
  device_.Remove(behind_.get());
}

void FaultyQueuePair::MoveToError() {
  for (const WorkCompletion& completion : std::exchange(lost_, {})) {
    queue_.Flush(completion.wr_id, number());
  }
  for (const HeldSend& held : std::exchange(held_, {})) {
    queue_.Flush(held.request.wr_id, number());
  }
  behind_->MoveToError();
}

// ---- FaultyDevice ----

FaultyDevice::FaultyDevice(std::unique_ptr<Device> behind)
    : behind_(std::move(behind)), capabilities_(behind_->capabilities()) {}

FaultyDevice::~FaultyDevice() = default;

absl::StatusOr<std::unique_ptr<ProtectionDomain>> FaultyDevice::AllocateProtectionDomain() {
  auto domain = behind_->AllocateProtectionDomain();
  if (!domain.ok()) return domain.status();
  return std::make_unique<FaultyProtectionDomain>(*this, *std::move(domain));
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> FaultyDevice::CreateCompletionQueue(
    uint32_t depth, CompletionChannel* channel) {
  auto queue = behind_->CreateCompletionQueue(depth, channel);
  if (!queue.ok()) return queue.status();
  return std::make_unique<FaultyCompletionQueue>(*this, *std::move(queue));
}

absl::StatusOr<std::unique_ptr<ConnectionManager>> FaultyDevice::CreateConnectionManager() {
  auto manager = behind_->CreateConnectionManager();
  if (!manager.ok()) return manager.status();
  return std::make_unique<FaultyConnectionManager>(*this, *std::move(manager));
}

void FaultyDevice::Add(QueuePair* behind, FaultyQueuePair* pair) {
  std::lock_guard lock(mutex_);
  pairs_[behind] = pair;
}

void FaultyDevice::Remove(QueuePair* behind) {
  std::lock_guard lock(mutex_);
  pairs_.erase(behind);
}

FaultyQueuePair* FaultyDevice::Find(const QueuePair* behind) {
  std::lock_guard lock(mutex_);
  const auto found = pairs_.find(behind);
  return found == pairs_.end() ? nullptr : found->second;
}

FaultyQueuePair* FaultyDevice::FindByNumber(uint32_t number) {
  std::lock_guard lock(mutex_);
  for (const auto& [behind, pair] : pairs_) {
    if (behind->number() == number) return pair;
  }
  return nullptr;
}

}  // namespace verbena
