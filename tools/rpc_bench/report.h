// SPDX-License-Identifier: Apache-2.0
//
// How results are printed: a table for people, JSON for programs. Pure functions; any thread.

#pragma once

#include <string>

#include "verbena/tools/rpc_bench/ceiling.h"
#include "verbena/tools/rpc_bench/options.h"
#include "verbena/tools/rpc_bench/result.h"

namespace verbena::bench {

std::string ResultTable(const Options& options, const Conditions& conditions, const Result& result);
// Every key is always there; what was not measured is null. Times in microseconds, rates per
// second, as the keys say.
std::string ResultJson(const Options& options, const Conditions& conditions, const Result& result);

std::string CeilingTable(const Conditions& conditions, const Ceiling& ceiling);
std::string CeilingJson(const Conditions& conditions, const Ceiling& ceiling);

}  // namespace verbena::bench
