// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/host.h"

#include <linux/capability.h>
#include <sys/resource.h>

#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "verbena/tools/doctor/cgroup.h"
#include "verbena/tools/doctor/files.h"

namespace verbena::doctor {
namespace {

bool HasCapability(const Roots& roots, int capability) {
  const std::string status = ReadText(roots.proc + "/self/status").value_or("");
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    uint64_t effective = 0;
    if (!absl::ConsumePrefix(&line, "CapEff:\t")) continue;
    return absl::SimpleHexAtoi(line, &effective) && ((effective >> capability) & 1) != 0;
  }
  return false;
}

// "rdma system" writes what is read here.
std::optional<bool> DevicesShared(const Roots& roots) {
  std::optional<std::string> mode = ReadText(roots.sys + "/module/ib_core/parameters/netns_mode");
  return mode.has_value() ? std::optional(*mode == "Y") : std::nullopt;
}

uint64_t Bytes(rlim_t limit) { return limit == RLIM_INFINITY ? kUnlimited : limit; }

}  // namespace

HostFacts ReadHost(const Roots& roots) {
  HostFacts host;
  // A module that is built in has no folder in /sys/module, but its class of devices is there.
  auto loaded = [&](const char* module, const char* trace) {
    return Exists(roots.sys + "/module/" + module) || Exists(roots.sys + "/class/" + trace);
  };
  host.core_module = loaded("ib_core", "infiniband");
  host.uverbs_module = loaded("ib_uverbs", "infiniband_verbs");
  host.ucm_module = loaded("rdma_ucm", "misc/rdma_cm");
  host.device_folder = Exists(roots.dev + "/infiniband");
  host.connection_manager.path = roots.dev + "/infiniband/rdma_cm";
  host.connection_manager.exists = Exists(host.connection_manager.path);
  host.connection_manager.open_errno = OpenErrno(host.connection_manager.path);
  host.memlock_exempt = HasCapability(roots, CAP_IPC_LOCK);
  host.cgroup_memory_bytes_max = ReadCgroupMemoryMax(roots);
  host.cgroup_rdma = ReadCgroupRdma(roots);
  host.devices_shared = DevicesShared(roots);
  return host;
}

void ReadMemlock(HostFacts* host) {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  host->memlock_bytes = Bytes(limit.rlim_cur);
  host->memlock_hard_bytes = Bytes(limit.rlim_max);
}

}  // namespace verbena::doctor
