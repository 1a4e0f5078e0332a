// SPDX-License-Identifier: Apache-2.0
//
// In poll mode a call makes no system call, on either side: counted by strace for N calls and for
// ten times as many.

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbena/tests/bench/command.h"

namespace verbena::bench {
namespace {

std::string TracePath() {
  const char* folder = std::getenv("TEST_TMPDIR");
  return std::string(folder == nullptr ? "/tmp" : folder) + "/strace." + std::to_string(getpid());
}

// Why strace can't count here; empty when it can.
std::string WhyNoStrace() {
  CommandResult probe = RunCommand({"strace", "-f", "-c", "-o", TracePath(), "true"});
  if (probe.exit_code == 0) return "";
  return "strace does not run here (not installed, or ptrace is not allowed): " + probe.err;
}

struct Count {
  uint64_t total = 0;
  std::string table;
};

// All system calls of rpc_bench, its server and its ceilings during a measurement of `calls`.
Count SystemCallsOf(const std::vector<std::string>& options, uint64_t calls) {
  std::vector<std::string> argv = {
      "strace",   "-f",    "-c",          "-o",           TracePath(),
      RpcBench(), "local", "--poll=busy", "--seconds=60", "--calls=" + std::to_string(calls)};
  argv.insert(argv.end(), options.begin(), options.end());
  CommandResult result = RunCommand(argv, /*timeout_s=*/120);
  EXPECT_EQ(result.exit_code, 0) << result.err;

  Count count;
  std::ifstream trace(TracePath());
  for (std::string line; std::getline(trace, line);) {
    count.table += line + "\n";
    // "100.00    0.023141          14      1632        34 total"
    if (line.find(" total") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string percent, seconds, each;
    fields >> percent >> seconds >> each >> count.total;
  }
  EXPECT_GT(count.total, 0u) << count.table;
  return count;
}

void ExpectNoSystemCallPerCall(const std::vector<std::string>& options) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "rpc_bench local needs two cores";
  const std::string why = WhyNoStrace();
  if (!why.empty()) GTEST_SKIP() << why;
  constexpr uint64_t kCalls = 20'000;
  const Count few = SystemCallsOf(options, kCalls);
  const Count many = SystemCallsOf(options, 10 * kCalls);
  // Starting and stopping differ by some hundred calls from run to run (waiting is done in small
  // sleeps); one system call in a hundred calls would be 1,800 more.
  EXPECT_LT(many.total, few.total + 9 * kCalls / 100) << "few:\n"
                                                      << few.table << "many:\n"
                                                      << many.table;
}

TEST(SystemCalls, NoneInABlockingCall) { ExpectNoSystemCallPerCall({}); }

TEST(SystemCalls, NoneInACallbackCall) { ExpectNoSystemCallPerCall({"--mode=throughput"}); }

TEST(SystemCalls, NoneBetweenEndpoints) { ExpectNoSystemCallPerCall({"--layer=endpoint"}); }

}  // namespace
}  // namespace verbena::bench
