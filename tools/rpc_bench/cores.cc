// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/cores.h"

#include <sched.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace verbena::bench {

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  if (cores.empty()) cores.push_back(0);  // More than CPU_SETSIZE cores: the call fails.
  return cores;
}

absl::StatusOr<CoreSplit> SplitCores(const std::vector<int>& allowed, uint32_t threads) {
  if (allowed.size() < 2) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this process may use one core only (", absl::StrJoin(allowed, ","),
        "), and this measurement needs two; give it a second one, or measure with `rpc_bench "
        "serve --poll=event` and `rpc_bench run --poll=event`"));
  }
  const size_t each = std::min<size_t>(std::max(threads, 1u), allowed.size() / 2);
  auto first = allowed.begin();
  return CoreSplit{{first, first + each}, {first + each, first + 2 * each}};
}

absl::Status PinThisThread(const std::vector<int>& cores) {
  if (cores.empty()) return absl::OkStatus();
  cpu_set_t wanted, got;
  CPU_ZERO(&wanted);
  for (int core : cores) {
    if (core < CPU_SETSIZE) CPU_SET(core, &wanted);
  }
  CPU_ZERO(&got);
  // The kernel takes the cores that exist and may be used, and says nothing of the others.
  if (sched_setaffinity(0, sizeof(wanted), &wanted) == 0) {
    sched_getaffinity(0, sizeof(got), &got);
  }
  if (CPU_EQUAL(&wanted, &got) && CPU_COUNT(&got) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--cpu=", absl::StrJoin(cores, ","),
                   ": not all of these are cores that this process may use"));
}

}  // namespace verbena::bench
