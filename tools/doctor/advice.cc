// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/advice.h"

#include <algorithm>

namespace verbena::doctor {

std::vector<Advice> Advise(const Facts& facts, const Verdict& verdict) {
  std::vector<Advice> advice;
  AdviseOnUse(facts, verdict, &advice);
  AdviseOnHost(facts, &advice);
  AdviseOnCounters(facts, &advice);
  AdviseOnNetwork(facts, &advice);
  AdviseOnDevice(facts, &advice);
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return a.severity < b.severity; });
  return advice;
}

const char* Name(Severity severity) {
  switch (severity) {
    case Severity::kBlocks:
      return "blocks";
    case Severity::kRisk:
      return "risk";
    case Severity::kSlow:
      return "slow";
    case Severity::kNote:
      return "note";
  }
  return "unknown";
}

}  // namespace verbena::doctor
