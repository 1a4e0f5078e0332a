// SPDX-License-Identifier: Apache-2.0

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/base/cycle_clock.h"
#include "verbena/tools/rpc_bench/ceiling.h"
#include "verbena/tools/rpc_bench/shared_segment.h"

namespace verbena::bench {
namespace {

constexpr uint64_t kBudgetNs = 100'000'000;
// Copies that are timed together last at least so long, to make the clock's part small.
constexpr uint64_t kBatchNs = 1'000'000;
constexpr size_t kBatchesMin = 5;

uint64_t TimeCopies(const CycleClock& clock, void* to, const void* from, uint64_t bytes,
                    uint64_t copies) {
  const uint64_t start = clock.ReadTicks();
  for (uint64_t i = 0; i < copies; ++i) {
    std::memcpy(to, from, bytes);
    asm volatile("" : : "r"(to) : "memory");
  }
  return std::max<uint64_t>(1, clock.TicksToNs(clock.ReadTicks() - start));
}

absl::Status CheckMemory(uint64_t bytes) {
  struct sysinfo host;
  if (sysinfo(&host) != 0) return absl::OkStatus();  // Let mmap say.
  // Buffers count as free here; the page cache does not, and is enough of a reserve.
  const uint64_t free_bytes = (host.freeram + host.bufferram) * uint64_t{host.mem_unit};
  if (2 * bytes <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("measuring the copy of ", bytes,
                                                   " bytes needs twice as much free memory, and ",
                                                   free_bytes, " bytes are free"));
}

}  // namespace

absl::StatusOr<CopyRate> MeasureCopyRate(uint64_t bytes) {
  if (bytes == 0) return CopyRate{};
  if (absl::Status enough = CheckMemory(bytes); !enough.ok()) return enough;
  absl::StatusOr<SharedSegment> from = SharedSegment::Create(bytes);
  if (!from.ok()) return from.status();
  absl::StatusOr<SharedSegment> to = SharedSegment::Create(bytes);
  if (!to.ok()) return to.status();

  const CycleClock clock;
  TimeCopies(clock, to->data(), from->data(), bytes, 1);  // Fills the caches and the TLB.
  const uint64_t once_ns = TimeCopies(clock, to->data(), from->data(), bytes, 1);
  const uint64_t copies = std::max<uint64_t>(1, kBatchNs / once_ns);
  std::vector<uint64_t> batches_ns;
  for (uint64_t spent_ns = 0; spent_ns < kBudgetNs || batches_ns.size() < kBatchesMin;) {
    batches_ns.push_back(TimeCopies(clock, to->data(), from->data(), bytes, copies));
    spent_ns += batches_ns.back();
  }
  auto median = batches_ns.begin() + static_cast<ptrdiff_t>(batches_ns.size() / 2);
  std::nth_element(batches_ns.begin(), median, batches_ns.end());
  return CopyRate{bytes, static_cast<double>(copies * bytes) * 1e9 / static_cast<double>(*median)};
}

}  // namespace verbena::bench
