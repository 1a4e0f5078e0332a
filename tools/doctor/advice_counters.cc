// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "verbena/tools/doctor/advice.h"
#include "verbena/tools/doctor/counter_meaning.h"

namespace verbena::doctor {
namespace {

struct Rule {
  Trouble trouble;
  Severity severity;
  const char* what;
  const char* why;
};

constexpr Rule kRules[] = {
    {Trouble::kBroken, Severity::kRisk, "Connections or links have failed",
     "Retries were used up, a peer refused an access, or the link itself made errors: a cable, a "
     "switch or a peer is broken, or was at some time."},
    {Trouble::kDiscard, Severity::kRisk, "Packets were thrown away for lack of buffers",
     "A NIC or a net device had no room. On RoCE each of them costs a retransmission; flow control "
     "avoids it."},
    {Trouble::kRetransmission, Severity::kRisk, "Packets had to be sent again",
     "Something on the way loses packets or answers late. Each time costs at least a round trip, "
     "at "
     "the end of a message a timeout."},
    {Trouble::kOutOfSequence, Severity::kRisk, "Packets arrived with gaps or twice",
     "Packets are lost or take several ways. NICs send again from the gap on."},
    {Trouble::kReceiverNotReady, Severity::kRisk, "Messages found no receive buffer",
     "Verbena's credits never let that happen, so another program on this device does it; each "
     "time "
     "the sender waits."},
    {Trouble::kCongestion, Severity::kNote, "The network marks congestion",
     "Congestion notification is at work: senders slow down. Much of it means more traffic than "
     "the "
     "network carries."},
    {Trouble::kPause, Severity::kNote, "Pause frames were exchanged",
     "Flow control is at work. Many of them mean a receiver that is too slow, and spread to "
     "others."},
};

std::string Named(const std::vector<Counter>& counters) {
  return absl::StrJoin(counters, ", ", [](std::string* out, const Counter& counter) {
    absl::StrAppend(out, counter.name, " ", counter.value);
  });
}

}  // namespace

void AdviseOnCounters(const Facts& facts, std::vector<Advice>* advice) {
  for (const DeviceFacts& device : facts.devices) {
    for (const PortFacts& port : device.ports) {
      const std::vector<Counter> all = AllCounters(device, port, facts);
      for (const Rule& rule : kRules) {
        const std::vector<Counter> found = NonZero(all, rule.trouble);
        if (found.empty()) continue;
        advice->push_back(
            {rule.severity,
             absl::StrCat("counters_", Name(rule.trouble)),
             absl::StrCat(device.name, " port ", port.number),
             absl::StrCat(rule.what, ": ", Named(found)),
             absl::StrCat(rule.why,
                          " Counters run since the device came up: only those that grow "
                          "under load say something of now."),
             {absl::StrCat("watch -d rdma statistic show link ", device.name, "/", port.number)}});
      }
    }
  }
}

}  // namespace verbena::doctor
