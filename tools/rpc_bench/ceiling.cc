// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/ceiling.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "verbena/base/cycle_clock.h"
#include "verbena/base/histogram.h"
#include "verbena/tools/rpc_bench/ceiling_segment.h"
#include "verbena/tools/rpc_bench/child_process.h"
#include "verbena/tools/rpc_bench/percentile.h"
#include "verbena/tools/rpc_bench/shared_segment.h"

namespace verbena::bench {
namespace {

using Task = CeilingSegment::Task;

// Long enough for some hundred thousand messages; on a busy machine it takes no longer, either.
constexpr uint64_t kTaskNs = 100'000'000;
constexpr uint32_t kWarmUpRounds = 10'000;

absl::Status PartnerGone() {
  return absl::UnavailableError("the second process of the ceiling does not answer any more");
}

// Hands the task to the partner and waits until it has begun.
absl::Status Ask(CeilingSegment& segment, ChildProcess& partner, Task task) {
  segment.task = task;
  const uint32_t asked = segment.asked.load(std::memory_order_relaxed) + 1;
  segment.asked.store(asked, std::memory_order_release);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (segment.answered.load(std::memory_order_acquire) != asked) {
    if (!partner.IsRunning() || std::chrono::steady_clock::now() > deadline) return PartnerGone();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return absl::OkStatus();
}

absl::Status MeasurePingPong(CeilingSegment& segment, Ceiling* ceiling) {
  const CycleClock clock;
  auto latency_ns = std::make_unique<Histogram>();
  std::byte message[kMessageBytes] = {};
  const uint64_t stop_ticks = clock.ReadTicks() + clock.NsToTicks(kTaskNs);
  for (uint32_t round = 1;; ++round) {
    const uint64_t start = clock.ReadTicks();
    CopyMessage(segment.ping.payload.data(), message);
    segment.ping.sequence.store(round, std::memory_order_release);
    if (!SpinUntil(
            [&] { return segment.pong.sequence.load(std::memory_order_acquire) == round; })) {
      return PartnerGone();
    }
    CopyMessage(message, segment.pong.payload.data());
    const uint64_t end = clock.ReadTicks();
    // A machine that is too slow for the warm-up shall measure something, too.
    if (round > kWarmUpRounds || end >= stop_ticks) {
      latency_ns->Record(clock.TicksToNs(end - start));
    }
    if (end >= stop_ticks) break;
  }
  segment.ping.sequence.store(kLast, std::memory_order_release);
  ceiling->rtt_p50_us = PercentileUs(*latency_ns, 50);
  ceiling->rtt_p99_us = PercentileUs(*latency_ns, 99);
  return absl::OkStatus();
}

absl::Status MeasureRing(CeilingSegment& segment, Ceiling* ceiling) {
  const CycleClock clock;
  std::byte message[kMessageBytes] = {};
  uint32_t sent = 0, read = 0;
  auto wait_for_room = [&] {
    return sent - read < kRingSlots || SpinUntil([&] {
             read = segment.ring_read.load(std::memory_order_acquire);
             return sent - read < kRingSlots;
           });
  };
  const uint64_t start = clock.ReadTicks();
  const uint64_t stop_ticks = start + clock.NsToTicks(kTaskNs);
  while (sent % kRingSlots != 0 || clock.ReadTicks() < stop_ticks) {
    if (!wait_for_room()) return PartnerGone();
    CopyMessage(segment.ring[sent % kRingSlots].data(), message);
    if (++sent % kRingPublishEvery == 0) {
      segment.ring_written.store(sent, std::memory_order_release);
    }
  }
  if (!SpinUntil([&] { return segment.ring_read.load(std::memory_order_acquire) == sent; })) {
    return PartnerGone();
  }
  const uint64_t ns = clock.TicksToNs(clock.ReadTicks() - start);
  segment.ring_written.store(kLast, std::memory_order_release);
  ceiling->ring_messages_per_second = sent * 1e9 / static_cast<double>(ns);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Ceiling> MeasureCeiling(int partner_core, std::span<const uint64_t> copy_sizes) {
  absl::StatusOr<SharedSegment> memory = SharedSegment::Create(sizeof(CeilingSegment));
  if (!memory.ok()) return memory.status();
  absl::StatusOr<ChildProcess> partner = ChildProcess::StartSelf(
      {"ceiling_partner", absl::StrCat("--cpu=", partner_core)}, memory->fd());
  if (!partner.ok()) return partner.status();

  auto& segment = *static_cast<CeilingSegment*>(memory->data());
  Ceiling ceiling;
  absl::Status status = Ask(segment, *partner, Task::kPingPong);
  if (status.ok()) status = MeasurePingPong(segment, &ceiling);
  if (status.ok()) status = Ask(segment, *partner, Task::kRing);
  if (status.ok()) status = MeasureRing(segment, &ceiling);
  if (!status.ok()) return status;
  partner->Stop();

  for (uint64_t bytes : copy_sizes) {
    absl::StatusOr<CopyRate> rate = MeasureCopyRate(bytes);
    if (!rate.ok()) return rate.status();
    ceiling.copies.push_back(*rate);
  }
  return ceiling;
}

}  // namespace verbena::bench
