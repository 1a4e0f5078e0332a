// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <thread>

#include "verbena/tools/rpc_bench/ceiling.h"
#include "verbena/tools/rpc_bench/ceiling_segment.h"
#include "verbena/tools/rpc_bench/child_process.h"
#include "verbena/tools/rpc_bench/shared_segment.h"

namespace verbena::bench {
namespace {

// Both: false when nothing came for seconds.
bool AnswerPingPong(CeilingSegment& segment) {
  std::byte message[kMessageBytes];
  uint32_t round = 0;
  while (true) {
    uint32_t next = round;
    if (!SpinUntil([&] {
          next = segment.ping.sequence.load(std::memory_order_acquire);
          return next != round;
        })) {
      return false;
    }
    if (next == kLast) return true;
    round = next;
    CopyMessage(message, segment.ping.payload.data());
    CopyMessage(segment.pong.payload.data(), message);
    segment.pong.sequence.store(round, std::memory_order_release);
  }
}

bool ReadRing(CeilingSegment& segment) {
  std::byte message[kMessageBytes];
  uint32_t read = 0, written = 0;
  while (true) {
    if (!SpinUntil([&] {
          written = segment.ring_written.load(std::memory_order_acquire);
          return written != read;
        })) {
      return false;
    }
    if (written == kLast) return true;
    while (read != written) {
      CopyMessage(message, segment.ring[read % kRingSlots].data());
      if (++read % kRingReportEvery == 0) {
        segment.ring_read.store(read, std::memory_order_release);
      }
    }
  }
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
