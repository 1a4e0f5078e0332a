// SPDX-License-Identifier: Apache-2.0
//
// Facts, verdict and advice for people and for programs. Both say the same. Pure.

#pragma once

#include <string>
#include <vector>

#include "verbena/tools/doctor/advice.h"
#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/gid_choice.h"
#include "verbena/tools/doctor/verdict.h"

namespace verbena::doctor {

// Facts with all that follows from them.
struct Diagnosis {
  Facts facts;
  Family family = Family::kAny;
  Verdict verdict;
  std::vector<Advice> advice;
};

Diagnosis Diagnose(Facts facts, Family family);

// Lines of at most 100 columns where nothing in them is longer.
std::string ReportText(const Diagnosis& diagnosis);
// One object; docs/doctor.md lists its keys.
std::string ReportJson(const Diagnosis& diagnosis);

// The names of a device's abilities, the same in both reports.
struct NamedCapability {
  const char* name;   // "write_with_imm"
  const char* title;  // "write with immediate data"
  const Capability* capability;
};
std::vector<NamedCapability> NamedCapabilities(const VerbsCapabilities& capabilities);

const char* Name(GidType type);     // "RoCE v2"
const char* Name(LinkLayer layer);  // "Ethernet"
const char* Name(ForkState state);  // "unneeded"
// "RoCE", "InfiniBand", "iWARP": transport and link layer together.
const char* TransportName(const DeviceFacts& device, const PortFacts& port);

}  // namespace verbena::doctor
