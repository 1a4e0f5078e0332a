// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/tools/doctor/advice.h"
#include "verbena/tools/doctor/bytes.h"

namespace verbena::doctor {
namespace {

// A server for a rack or two, with room for payload buffers beside its connections. Fewer are worth
// a word; what Docker gives by default, 8 MiB, is 14.
constexpr uint64_t kConnectionsComfortable = 1000;
// Kernel objects of one connection: queue pair, completion queue and channel, protection domain,
// memory regions. Below a hundred connections' worth a limit is worth a word.
constexpr uint64_t kObjectsComfortable = 100 * 8;

void AdviseOnMemlock(const HostFacts& host, std::vector<Advice>* advice) {
  const uint64_t connections = ConnectionsByMemlock(host);
  // Zero is a verdict already.
  if (connections == 0 || connections >= kConnectionsComfortable) return;
  std::string set = host.memlock_hard_bytes == kUnlimited
                        ? "ulimit -l unlimited"
                        : "printf '* - memlock unlimited\\n' > /etc/security/limits.d/rdma.conf";
  advice->push_back(
      {Severity::kRisk,
       "memlock_low",
       "host",
       absl::StrCat("Locked memory is limited to ", FormatBytes(host.memlock_bytes), ": ",
                    connections, " connections with default options"),
       absl::StrCat("Memory that the NIC reaches is locked. A connection needs ",
                    FormatBytes(ConnectionBytes()),
                    " besides the device's own queues; the next one fails with \"Cannot allocate "
                    "memory\"."),
       {set, "systemd: LimitMEMLOCK=infinity", "docker run --ulimit memlock=-1 ..."}});
}

void AdviseOnCgroup(const HostFacts& host, std::vector<Advice>* advice) {
  for (const CgroupRdmaLimit& limit : host.cgroup_rdma) {
    if (limit.objects_max >= kObjectsComfortable && limit.handles_max > 1) continue;
    advice->push_back(
        {Severity::kRisk,
         "cgroup_rdma_low",
         limit.device,
         absl::StrCat("The control group allows few RDMA objects: hca_handle=",
                      FormatCount(limit.handles_max),
                      ", hca_object=", FormatCount(limit.objects_max)),
         "Each process takes a handle, and each connection takes about eight objects; past the "
         "limit "
         "creating them fails with \"Resource temporarily unavailable\".",
         {absl::StrCat("echo '", limit.device,
                       " hca_handle=max hca_object=max' > /sys/fs/cgroup/GROUP/rdma.max")}});
  }
}

void AdviseOnFork(const HostFacts& host, std::vector<Advice>* advice) {
  if (host.fork != ForkState::kUnsafe) return;
  advice->push_back({Severity::kNote,
                     "fork_unsafe",
                     "host",
                     "fork() is not safe once a device is open",
                     "This kernel does not copy locked pages on fork, so parent and child could "
                     "each lose sight of what the NIC writes.",
                     {"posix_spawn or fork() before the first device is opened",
                      "RDMAV_FORK_SAFE=1 PROGRAM   # at the price of slower registration",
                      "Linux 5.12 or newer needs neither"}});
}

}  // namespace

void AdviseOnHost(const Facts& facts, std::vector<Advice>* advice) {
  // Without devices none of it matters yet.
  if (facts.devices.empty()) return;
  AdviseOnMemlock(facts.host, advice);
  AdviseOnCgroup(facts.host, advice);
  AdviseOnFork(facts.host, advice);
}

}  // namespace verbena::doctor
