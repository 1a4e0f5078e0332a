// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON of the same diagnosis say the same.

#include "verbena/tools/doctor/report.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verbena/tests/doctor/facts_for_test.h"

namespace verbena::doctor {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// One line with single spaces: where the text breaks lines does not matter here.
std::string Flat(const std::string& text) {
  std::string flat;
  for (char letter : text) {
    const bool space = letter == ' ' || letter == '\n';
    if (!space) flat += letter;
    if (space && !flat.empty() && flat.back() != ' ') flat += ' ';
  }
  return flat;
}

Facts Troubled() {
  Facts facts = HealthyRoce();
  facts.host.memlock_bytes = uint64_t{8} << 20;
  facts.devices[0].ports[0].counters[0].value = 17;
  facts.devices[0].ports[0].mtu_active_bytes = 1024;
  facts.devices[0].verbs.capabilities.on_demand_paging = {Support::kNo, "refused"};
  facts.devices.push_back(facts.devices[0]);
  facts.devices[1].name = "efa_0";
  facts.devices[1].verbs.capabilities.reliable_connection = {Support::kNo, "queue pair refused"};
  return facts;
}

std::vector<Diagnosis> Cases() {
  return {Diagnose(HealthyRoce(), Family::kAny), Diagnose(Troubled(), Family::kAny),
          Diagnose(Nothing(), Family::kAny), Diagnose(HealthyRoce(), Family::kIpv6)};
}

TEST(Report, TextAndJsonGiveTheSameVerdict) {
  for (const Diagnosis& diagnosis : Cases()) {
    const std::string text = Flat(ReportText(diagnosis));
    const json parsed = json::parse(ReportJson(diagnosis));
    EXPECT_THAT(text, HasSubstr(parsed["usable"] ? "RDMA is usable" : "RDMA is not usable"));
    EXPECT_EQ(parsed["usable"], parsed["reason"] == "usable");
    for (const json& device : parsed["devices"]) {
      EXPECT_THAT(text, HasSubstr(device["name"].get<std::string>() +
                                  (device["usable"] ? " usable " : " NOT usable: ") +
                                  device["detail"].get<std::string>()));
    }
  }
}

TEST(Report, TextAndJsonGiveTheSameAdviceInTheSameOrder) {
  for (const Diagnosis& diagnosis : Cases()) {
    const std::string text = Flat(ReportText(diagnosis));
    const json parsed = json::parse(ReportJson(diagnosis));
    size_t at = text.find("dvice");
    ASSERT_NE(at, std::string::npos);
    int number = 0;
    for (const json& advice : parsed["advice"]) {
      const std::string expected =
          std::to_string(++number) + ". [" + advice["severity"].get<std::string>() + "] " +
          advice["subject"].get<std::string>() + ": " + advice["what"].get<std::string>();
      at = text.find(expected, at);
      ASSERT_NE(at, std::string::npos) << expected;
      for (const json& command : advice["commands"]) {
        EXPECT_NE(text.find(Flat(command.get<std::string>()), at), std::string::npos) << command;
      }
    }
    EXPECT_EQ(text.find(std::to_string(number + 1) + ". ["), std::string::npos);
  }
}

TEST(Report, TextAndJsonGiveTheSameGidsLimitsAndCounters) {
  for (const Diagnosis& diagnosis : Cases()) {
    const std::string text = Flat(ReportText(diagnosis));
    const json parsed = json::parse(ReportJson(diagnosis));
    for (const json& device : parsed["devices"]) {
      EXPECT_THAT(text, HasSubstr(std::to_string(device["limits"]["queue_pairs"].get<uint64_t>()) +
                                  " queue pairs"));
      for (const json& port : device["ports"]) {
        EXPECT_THAT(text, HasSubstr(port["rate"].get<std::string>()));
        for (const json& gid : port["gids"]) {
          EXPECT_THAT(text,
                      HasSubstr(std::to_string(gid["index"].get<int>()) + ": " +
                                gid["gid"].get<std::string>() + ", " +
                                gid["note"].get<std::string>() + (gid["used"] ? ". Used: " : "")));
        }
        for (const json& trouble : port["trouble"]) {
          EXPECT_THAT(text, HasSubstr(trouble["name"].get<std::string>() + " " +
                                      std::to_string(trouble["value"].get<uint64_t>())));
        }
      }
    }
  }
}

TEST(Report, JsonHasEachCapability) {
  const json parsed = json::parse(ReportJson(Diagnose(Troubled(), Family::kAny)));
  const json& can = parsed["devices"][0]["capabilities"];
  for (const char* name :
       {"reliable_connection", "write_with_imm", "send_with_invalidate", "atomics",
        "memory_windows", "shared_receive_queue", "on_demand_paging", "relaxed_ordering"}) {
    EXPECT_TRUE(can[name]["supported"].is_boolean()) << name;
  }
  EXPECT_EQ(can["on_demand_paging"]["supported"], false);
  EXPECT_EQ(can["write_with_imm"]["supported"], true);
}

TEST(Report, UnlimitedIsNullInJson) {
  const json parsed = json::parse(ReportJson(Diagnose(HealthyRoce(), Family::kAny)));
  EXPECT_TRUE(parsed["host"]["memlock_bytes"].is_null());
  EXPECT_TRUE(parsed["host"]["connections_by_memlock"].is_null());
  EXPECT_EQ(parsed["host"]["connection_bytes"], 582400);
}

TEST(Report, SaysThatAllIsWell) {
  const std::string text = ReportText(Diagnose(HealthyRoce(), Family::kAny));
  EXPECT_THAT(text, HasSubstr("RDMA is usable: mlx5_0 (1 of 1 device).\n"));
  EXPECT_THAT(text, HasSubstr("No advice"));
}

TEST(Report, LinesAreAtMost100Columns) {
  for (const Diagnosis& diagnosis : Cases()) {
    std::vector<std::string> lines = absl::StrSplit(ReportText(diagnosis), '\n');
    for (const std::string& line : lines) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(Report, SurvivesTextThatIsNotUtf8) {
  Facts facts = HealthyRoce();
  facts.devices[0].firmware = "\xff\xfe";
  EXPECT_TRUE(json::accept(ReportJson(Diagnose(facts, Family::kAny))));
}

TEST(Report, SurvivesFactsThatAreEmpty) {
  Facts facts;
  facts.devices.resize(2);
  facts.devices[0].ports.resize(1);
  const Diagnosis diagnosis = Diagnose(facts, Family::kAny);
  EXPECT_TRUE(json::accept(ReportJson(diagnosis)));
  EXPECT_THAT(ReportText(diagnosis), Not(HasSubstr("RDMA is usable")));
}

}  // namespace
}  // namespace verbena::doctor
