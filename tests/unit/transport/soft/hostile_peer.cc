// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/unit/transport/soft/hostile_peer.h"

#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "glog/logging.h"
#include "verbena/tests/support/must.h"
#include "verbena/tests/support/wait.h"

namespace verbena::soft {
namespace {

constexpr int kHangBoundMs = std::chrono::milliseconds(kHangBound).count();

void AwaitReadable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  CHECK_EQ(poll(&waiting, 1, kHangBoundMs), 1) << "the victim says nothing";
}

}  // namespace

HostilePeer::HostilePeer(const std::string& name) : socket_(Must(CreateSocket())) {
  const SegmentLayout layout(kSlots);
  segment_ = Must(CreateSealedMemory("hostile", layout.bytes, /*peers_may_write=*/true));
  own_ = SegmentView(segment_.mapping.data(), layout);
  event_ = Must(CreateEvent());
  keys_ = Must(KeyTable::Create());
  CHECK_EQ(ConnectTo(socket_.get(), name), 0);
}

void HostilePeer::SendBytes(const std::vector<std::byte>& bytes) {
  // The victim may have closed by now, which is its right.
  (void)send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void HostilePeer::Send(const ControlMessage& message, std::vector<int> descriptors) {
  (void)SendMessage(socket_.get(), message, descriptors);
}

ControlMessage HostilePeer::Message(MessageType type) {
  ControlMessage message;
  message.type = type;
  message.flags = kMessageMembarrier;
  message.queue_pair = kNumber;
  message.slots = kSlots;
  message.receiver_not_ready_timer = 1;
  return message;
}

void HostilePeer::TakeReply() {
  AwaitReadable(socket_.get());
  ControlMessage message;
  std::vector<UniqueFd> descriptors;
  CHECK(ReceiveMessage(socket_.get(), &message, &descriptors) == ReceiveResult::kMessage);
  CHECK(message.type == MessageType::kReply);
  const SegmentLayout layout(message.slots);
  victim_mapping_ = Must(Mapping::Shared(descriptors[0].get(), layout.bytes, /*writable=*/true));
  victim_ = SegmentView(victim_mapping_.data(), layout);
}

bool HostilePeer::AwaitClose(int bound_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(bound_ms);
  while (std::chrono::steady_clock::now() < until) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (poll(&waiting, 1, 10) == 0) continue;
    ControlMessage message;
    std::vector<UniqueFd> descriptors;
    if (ReceiveMessage(socket_.get(), &message, &descriptors) == ReceiveResult::kClosed)
      return true;
  }
  return false;
}

void HostilePeer::Publish(uint32_t receive_number, uint32_t length, uint32_t imm_or_key,
                          uint8_t opcode, uint8_t flags, uint8_t status) {
  CompletionEntry& entry = victim_.completions[receive_number & victim_.mask];
  entry.length = length;
  entry.imm_or_key = imm_or_key;
  entry.opcode = static_cast<WireOpcode>(opcode);
  entry.flags = flags;
  entry.status = static_cast<WireStatus>(status);
  entry.sequence.store(receive_number + 1, std::memory_order_release);
}

}  // namespace verbena::soft
