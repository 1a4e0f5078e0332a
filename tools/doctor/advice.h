// SPDX-License-Identifier: Apache-2.0
//
// What to do about the facts, the most important first. Pure.

#pragma once

#include <string>
#include <vector>

#include "verbena/tools/doctor/facts.h"
#include "verbena/tools/doctor/verdict.h"

namespace verbena::doctor {

enum class Severity {
  kBlocks,  // RDMA cannot be used because of it.
  kRisk,    // It works until load, time or a neighbour comes.
  kSlow,    // It works, slower than it could.
  kNote,    // Good to know.
};

struct Advice {
  Severity severity = Severity::kNote;
  std::string id;       // For programs; does not change: "memlock_low".
  std::string subject;  // "host", "mlx5_0" or "mlx5_0 port 1".
  std::string what;
  std::string why;
  std::vector<std::string> commands;  // Never empty.
};

// By severity; within one, in the order of the rules below.
std::vector<Advice> Advise(const Facts& facts, const Verdict& verdict);

// "blocks", "risk", "slow", "note".
const char* Name(Severity severity);

// The rules, each in a file of its own. They append in the order in which things should be looked
// at, and know nothing of each other.

// One advice for each device that is not usable, or one for the host without any.
void AdviseOnUse(const Facts& facts, const Verdict& verdict, std::vector<Advice>* advice);
// Locked memory, control groups, fork.
void AdviseOnHost(const Facts& facts, std::vector<Advice>* advice);
// Flow control, congestion, MTU, addresses.
void AdviseOnNetwork(const Facts& facts, std::vector<Advice>* advice);
// Counters that are not zero.
void AdviseOnCounters(const Facts& facts, std::vector<Advice>* advice);
// The device itself and its place in the machine.
void AdviseOnDevice(const Facts& facts, std::vector<Advice>* advice);

}  // namespace verbena::doctor
