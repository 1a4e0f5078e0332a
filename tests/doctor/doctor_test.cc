// SPDX-License-Identifier: Apache-2.0
//
// doctor as a whole, on whatever machine this is: with RDMA or without.

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;

struct CommandResult {
  int exit_code = -1;  // -1: it was killed, or did not start.
  std::string out;
};

// Standard error is part of `out` when `with_errors`.
CommandResult Doctor(const std::string& arguments, bool with_errors = false) {
  const char* program = getenv("DOCTOR");
  CommandResult result;
  if (program == nullptr) return result;
  const std::string command = std::string("timeout 60 ") + program + " " + arguments +
                              (with_errors ? " 2>&1" : " 2>/dev/null");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (size_t bytes = fread(buffer, 1, sizeof(buffer), pipe)) result.out.append(buffer, bytes);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

TEST(Doctor, ExitCodeSaysWhetherRdmaIsUsable) {
  CommandResult result = Doctor("--json");
  json report = json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << result.out;
  EXPECT_EQ(result.exit_code, report["usable"].get<bool>() ? 0 : 1);
  EXPECT_EQ(report["usable"], report["reason"] == "usable");
}

TEST(Doctor, WithoutVerbsItSaysSo) {
  const bool has_verbs = access("/sys/class/infiniband_verbs", F_OK) == 0 ||
                         access("/sys/module/ib_uverbs", F_OK) == 0;
  if (has_verbs) GTEST_SKIP() << "this machine has ib_uverbs";
  json report = json::parse(Doctor("--json").out, nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(report["reason"], "no_verbs_module");
  CommandResult text = Doctor("");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, HasSubstr("RDMA is not usable"));
  EXPECT_THAT(text.out, HasSubstr("modprobe ib_uverbs"));
}

TEST(Doctor, AdviceIsComplete) {
  json report = json::parse(Doctor("--json").out, nullptr, /*allow_exceptions=*/false);
  for (const json& advice : report["advice"]) {
    for (const char* key : {"id", "subject", "what", "why"}) {
      EXPECT_NE(advice[key].get<std::string>(), "") << advice;
    }
    EXPECT_FALSE(advice["commands"].empty()) << advice;
  }
}

TEST(Doctor, TextGivesTheSameExitCode) {
  EXPECT_EQ(Doctor("").exit_code, Doctor("--json").exit_code);
}

TEST(Doctor, NonsenseIsExitCode2) {
  for (const char* arguments :
       {"--what", "mlx5_0", "--json=perhaps", "--family", "--family=ipv5", "--version", "-json"}) {
    CommandResult result = Doctor(arguments, /*with_errors=*/true);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.out, HasSubstr("doctor: INVALID_ARGUMENT: ")) << arguments;
  }
}

TEST(Doctor, HelpTellsTheOptions) {
  CommandResult help = Doctor("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--json"));
  EXPECT_THAT(help.out, HasSubstr("--family"));
}

}  // namespace
