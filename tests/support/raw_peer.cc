// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/support/raw_peer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "verbena/tests/support/must.h"
#include "verbena/tests/support/wait.h"

namespace verbena {
namespace {

constexpr uint32_t kSendDepth = 64;
constexpr size_t kSendSlotBytes = 65536;  // The longest frame.
constexpr uint64_t kSendBit = uint64_t{1} << 63;

}  // namespace

RawPeer::RawPeer(Device& device, const RawPeerOptions& options)
    : device_(device), options_(options) {
  domain_ = Must(device_.AllocateProtectionDomain());
  queue_ = Must(device_.CreateCompletionQueue(options_.ring_depth + kSendDepth, nullptr));
  manager_ = Must(device_.CreateConnectionManager());
  receive_memory_ = Must(domain_->AllocateMemory(size_t{options_.ring_depth} * options_.slot_bytes,
                                                 kAccessLocalWrite));
  send_memory_ = Must(domain_->AllocateMemory(kSendDepth * kSendSlotBytes, kAccessLocalWrite));
  MakePair();
}

RawPeer::~RawPeer() = default;

void RawPeer::MakePair() {
  QueuePairOptions options;
  options.send_queue = queue_.get();
  options.recv_queue = queue_.get();
  options.send_depth = kSendDepth;
  options.recv_depth = options_.ring_depth;
  options.send_sge_max = 1;
  options.signal_all = true;
  pair_ = Must(domain_->CreateQueuePair(options));
  for (uint32_t slot = 0; slot < options_.ring_depth; ++slot) PostReceive(slot);
}

void RawPeer::PostReceive(uint32_t slot) {
  const ScatterGatherEntry entry{receive_memory_->address() + uint64_t{slot} * options_.slot_bytes,
                                 options_.slot_bytes, receive_memory_->local_key()};
  const RecvWorkRequest request{slot, {&entry, 1}};
  Must(pair_->PostRecv({&request, 1}));
}

void RawPeer::Renew() {
  pair_.reset();
  events_.clear();
  frames_.clear();
  immediates_.clear();
  sends_outstanding_ = 0;
  disconnected_ = false;
  broken_ = false;
  MakePair();
}

// ---- The handshake ----

Hello RawPeer::GoodHello() const {
  Hello hello;
  hello.ring_depth = options_.ring_depth;
  hello.slot_bytes = options_.slot_bytes;
  hello.epoch = 1;
  return hello;
}

void RawPeer::Connect(const Address& address, const PrivateData& hello) {
  ConnectOptions options;
  options.private_data = hello;
  Must(manager_->Connect(*pair_, address, options));
}

void RawPeer::Listen(const Address& address) { listener_ = Must(manager_->Listen(address)); }

PrivateData RawPeer::AwaitRequest() {
  ConnectionEvent event = AwaitEvent();
  if (event.type != ConnectionEvent::Type::kConnectRequest) {
    throw std::runtime_error("waited for a connection request and got another event");
  }
  request_ = std::move(event.request);
  return request_->private_data();
}

void RawPeer::Accept(const PrivateData& hello) {
  ConnectOptions options;
  options.private_data = hello;
  Must(manager_->Accept(std::move(request_), *pair_, options));
}

void RawPeer::Reject(const PrivateData& reason) {
  Must(manager_->Reject(std::move(request_), reason));
}

ConnectionEvent RawPeer::AwaitEvent() {
  StepUntil([this] { return !events_.empty(); }, "a connection event");
  ConnectionEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

Hello RawPeer::ConnectAndOpen(const Address& address) {
  Connect(address, EncodeHello(GoodHello()));
  const ConnectionEvent event = AwaitEvent();
  CHECK(event.type == ConnectionEvent::Type::kEstablished) << event.status;
  return Must(DecodeHello(event.private_data.span()));
}

Hello RawPeer::AcceptAndOpen() {
  const Hello hello = Must(DecodeHello(AwaitRequest().span()));
  Accept(EncodeHello(GoodHello()));
  const ConnectionEvent event = AwaitEvent();
  CHECK(event.type == ConnectionEvent::Type::kEstablished) << event.status;
  return hello;
}

// ---- Frames ----

void RawPeer::PostSend(Opcode opcode, std::span<const std::byte> bytes, const RemoteTarget& remote,
                       uint32_t immediate) {
  StepUntil([this] { return sends_outstanding_ < kSendDepth; }, "room in the send queue");
  std::byte* slot = send_memory_->bytes().data() + (sends_++ % kSendDepth) * kSendSlotBytes;
  std::copy(bytes.begin(), bytes.end(), slot);
  const ScatterGatherEntry entry{reinterpret_cast<uint64_t>(slot),
                                 static_cast<uint32_t>(bytes.size()), send_memory_->local_key()};
  SendWorkRequest request;
  request.wr_id = kSendBit;
  request.opcode = opcode;
  request.flags = kSendSignaled;
  request.sg_list = {&entry, bytes.empty() ? 0u : 1u};
  request.remote = remote;
  request.imm_data = immediate;
  Must(pair_->PostSend({&request, 1}));
  ++sends_outstanding_;
}

void RawPeer::Send(const Frame& frame) { PostSend(Opcode::kSend, frame, {}, 0); }

Frame RawPeer::AwaitFrame() {
  StepUntil([this] { return !frames_.empty(); }, "a frame");
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

Frame RawPeer::AwaitAnswer() {
  while (true) {
    Frame frame = AwaitFrame();
    if (KindOf(frame) != FrameKind::kGrant) return frame;
  }
}

Frame RawPeer::AwaitKind(FrameKind kind) {
  const auto is_it = [kind](const Frame& frame) { return KindOf(frame) == kind; };
  StepUntil([&] { return std::any_of(frames_.begin(), frames_.end(), is_it); },
            "a frame of a certain kind");
  const auto found = std::find_if(frames_.begin(), frames_.end(), is_it);
  Frame frame = std::move(*found);
  frames_.erase(found);
  return frame;
}

size_t RawPeer::FramesWaiting() {
  Step();
  return frames_.size();
}

size_t RawPeer::FramesWaiting(FrameKind kind) {
  Step();
  return static_cast<size_t>(
      std::count_if(frames_.begin(), frames_.end(),
                    [kind](const Frame& frame) { return KindOf(frame) == kind; }));
}

// ---- RDMA ----

void RawPeer::Write(const ZoneGrant& zone, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kSendSlotBytes);
    PostSend(Opcode::kWrite, bytes.first(count),
             {zone.address + offset, RemoteKey{zone.remote_key}}, 0);
    bytes = bytes.subspan(count);
    offset += count;
  }
}

void RawPeer::WriteWithImm(const ZoneGrant& zone, uint64_t offset, std::span<const std::byte> bytes,
                           uint32_t immediate) {
  const size_t last = std::min(bytes.size(), kSendSlotBytes);
  const size_t first = bytes.size() - last;
  Write(zone, offset, bytes.first(first));
  PostSend(Opcode::kWriteWithImm, bytes.subspan(first),
           {zone.address + offset + first, RemoteKey{zone.remote_key}}, immediate);
}

void RawPeer::AwaitSent() {
  StepUntil([this] { return sends_outstanding_ == 0; }, "what was posted to be over");
}

uint32_t RawPeer::AwaitImmediate() {
  StepUntil([this] { return !immediates_.empty(); }, "an immediate");
  const uint32_t immediate = immediates_.front();
  immediates_.pop_front();
  return immediate;
}

size_t RawPeer::ImmediatesWaiting() {
  Step();
  return immediates_.size();
}

ZoneGrant RawPeer::OfferZone(size_t bytes) {
  offered_.push_back(Must(domain_->AllocateMemory(bytes, kAccessLocalWrite | kAccessRemoteWrite)));
  const MemoryRegion& region = *offered_.back();
  return {.immediate = Immediate(static_cast<uint32_t>(offered_.size() - 1), 0).value(),
          .remote_key = region.remote_key().value,
          .address = region.address(),
          .length = region.size()};
}

std::span<std::byte> RawPeer::ZoneBytes(const ZoneGrant& zone) {
  return offered_.at(Immediate(zone.immediate).index())->bytes();
}

// ---- The end ----

void RawPeer::AwaitDisconnected() {
  StepUntil([this] { return disconnected_; }, "the other side to leave");
}

void RawPeer::Disconnect() { manager_->Disconnect(*pair_); }

void RawPeer::Step() {
  std::array<WorkCompletion, 32> completions;
  const size_t count = queue_->Poll(completions);
  for (size_t i = 0; i < count; ++i) {
    const WorkCompletion& completion = completions[i];
    if (completion.status != CompletionStatus::kSuccess) {
      broken_ = true;
    } else if ((completion.wr_id & kSendBit) == 0) {
      const auto slot = static_cast<uint32_t>(completion.wr_id);
      if (completion.opcode == CompletionOpcode::kRecvWriteWithImm) {
        immediates_.push_back(completion.imm_data);
      } else {
        const auto bytes = receive_memory_->bytes().subspan(size_t{slot} * options_.slot_bytes,
                                                            completion.byte_length);
        frames_.emplace_back(bytes.begin(), bytes.end());
      }
      if (options_.posts_receives_again && pair_ != nullptr) PostReceive(slot);
    }
    if ((completion.wr_id & kSendBit) != 0) --sends_outstanding_;
  }
  ConnectionEvent event;
  while (manager_->PollEvent(&event)) {
    if (event.type == ConnectionEvent::Type::kDisconnected) {
      disconnected_ = true;
    } else {
      events_.push_back(std::move(event));
    }
  }
  if (pump_) pump_();
}

void RawPeer::StepUntil(const std::function<bool()>& done, const char* what) {
  const auto end = std::chrono::steady_clock::now() + kHangBound;
  for (int steps = 1; !done(); ++steps) {
    Step();
    if (steps % 64 != 0) continue;
    if (std::chrono::steady_clock::now() >= end) {
      throw std::runtime_error(std::string("waited too long for ") + what);
    }
    // The other side may be a thread on the same core.
    if (!pump_) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace verbena
