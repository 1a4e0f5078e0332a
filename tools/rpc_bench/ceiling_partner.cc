// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <thread>

#include "verbena/tools/rpc_bench/ceiling.h"
#include "verbena/tools/rpc_bench/ceiling_segment.h"
#include "verbena/tools/rpc_bench/child_process.h"
#include "verbena/tools/rpc_bench/shared_segment.h"

namespace verbena::bench {
namespace {

bool AnswerPingPong(CeilingSegment& segment) {
  std::byte message[kMessageBytes];
  for (uint32_t round = 1; round <= segment.messages; ++round) {
    if (!SpinUntil(
            [&] { return segment.ping.sequence.load(std::memory_order_acquire) == round; })) {
      return false;
    }
    CopyMessage(message, segment.ping.payload.data());
    CopyMessage(segment.pong.payload.data(), message);
    segment.pong.sequence.store(round, std::memory_order_release);
  }
  return true;
}

bool ReadRing(CeilingSegment& segment) {
  std::byte message[kMessageBytes];
  for (uint32_t read = 0; read < segment.messages; ++read) {
    MessageSlot& slot = segment.ring[read % kRingSlots];
    if (!SpinUntil([&] { return slot.sequence.load(std::memory_order_acquire) == read + 1; })) {
      return false;
    }
    CopyMessage(message, slot.payload.data());
    const bool is_last = read + 1 == segment.messages;
    if ((read + 1) % kRingReportEvery == 0 || is_last) {
      segment.ring_read.store(read + 1, std::memory_order_release);
    }
  }
  return true;
}

}  // namespace

absl::Status RunCeilingPartner() {
  absl::StatusOr<SharedSegment> memory =
      SharedSegment::Open(UniqueFd(ChildProcess::kInheritedFd), sizeof(CeilingSegment));
  if (!memory.ok()) return memory.status();
  auto& segment = *static_cast<CeilingSegment*>(memory->data());
  for (uint32_t done = 0;; ++done) {
    while (segment.asked.load(std::memory_order_acquire) == done) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    segment.answered.store(done + 1, std::memory_order_release);
    const bool is_ping_pong = segment.task == CeilingSegment::Task::kPingPong;
    if (!(is_ping_pong ? AnswerPingPong(segment) : ReadRing(segment))) {
      return absl::UnavailableError("the first process of the ceiling does not ask any more");
    }
  }
}

}  // namespace verbena::bench
