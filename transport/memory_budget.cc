// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/memory_budget.h"

#include <sys/sysinfo.h>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace verbena {
namespace {

uint64_t HostMemoryBytes() {
  struct sysinfo info;
  PCHECK(sysinfo(&info) == 0);
  return uint64_t{info.totalram} * info.mem_unit;
}

}  // namespace

const std::shared_ptr<MemoryBudget>& MemoryBudget::OfProcess() {
  // Never destroyed: Buffers may be dropped after main().
  static const auto& budget = *new std::shared_ptr<MemoryBudget>(
      std::make_shared<MemoryBudget>("the memory budget of the process", HostMemoryBytes() / 2,
                                     "give the options a larger MemoryBudget"));
  return budget;
}

bool MemoryBudget::TryCharge(uint64_t bytes) {
  if (bytes > bytes_max_) return false;
  uint64_t in_use = bytes_in_use_.load(std::memory_order_relaxed);
  do {
    if (in_use > bytes_max_ - bytes) return false;
  } while (!bytes_in_use_.compare_exchange_weak(in_use, in_use + bytes, std::memory_order_relaxed));
  return true;
}

void MemoryBudget::Refund(uint64_t bytes) {
  const uint64_t before = bytes_in_use_.fetch_sub(bytes, std::memory_order_relaxed);
  DCHECK_GE(before, bytes) << name_ << ": more refunded than charged";
}

absl::Status MemoryBudget::Exhausted(uint64_t bytes) const {
  return absl::ResourceExhaustedError(
      absl::StrCat(name_, " is exhausted: ", bytes_in_use(), " of ", bytes_max_,
                   " bytes are in use and ", bytes, " more are needed: ", remedy_,
                   // What others hold doesn't matter when it would not be enough alone.
                   bytes > bytes_max_ ? ", or ask for less at once" : ", or hold fewer Buffers"));
}

}  // namespace verbena
