// SPDX-License-Identifier: Apache-2.0
//
// rpc_bench as a whole: what it prints, and how it fails. No figure is judged here.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verbena/tests/bench/command.h"

namespace verbena::bench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string UniqueAddress(const char* name) {
  // Not the process id: in Bazel's sandbox every test has the same one, and all share the names.
  static const uint32_t process = std::random_device{}();
  return std::string("shm:rpc_bench_test.") + name + "." + std::to_string(process);
}

bool HasTwoCores() { return std::thread::hardware_concurrency() >= 2; }

json RunLocal(std::vector<std::string> options) {
  std::vector<std::string> argv = {RpcBench(), "local", "--seconds=0.3", "--json"};
  argv.insert(argv.end(), options.begin(), options.end());
  CommandResult result = RunCommand(argv);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  json parsed = json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded()) << result.out;
  return parsed;
}

void ExpectAllKeys(const json& result) {
  for (const char* path :
       {"/rtt_us/p50", "/rtt_us/p99", "/rtt_us/p999", "/calls_per_second", "/bytes_per_second",
        "/cpu_us_per_call/client", "/cpu_us_per_call/server", "/ceiling/rtt_us",
        "/ceiling/copy_bytes_per_second", "/ceiling/ring_messages_per_second",
        "/ratio_to_ceiling"}) {
    const json& value = result.at(json::json_pointer(path));
    ASSERT_TRUE(value.is_number()) << path << " is " << value;
    EXPECT_GT(value.get<double>(), 0) << path;
  }
  for (const char* path : {"/allocations_per_call/client", "/allocations_per_call/server",
                           "/allocations_per_call/protobuf"}) {
    // Null under a sanitizer.
    const json& value = result.at(json::json_pointer(path));
    EXPECT_TRUE(value.is_number() || value.is_null()) << path << " is " << value;
  }
  for (const char* key : {"device", "wire", "cores", "cpu_model", "kernel", "poll", "build_mode"}) {
    EXPECT_TRUE(result.at("conditions").at(key).is_string()) << key;
  }
  for (const char* key : {"size_bytes", "concurrency", "threads", "seconds"}) {
    EXPECT_TRUE(result.at("conditions").at(key).is_number()) << key;
  }
  EXPECT_TRUE(result.at("/conditions/versions/verbena"_json_pointer).is_string());
  EXPECT_EQ(result.at("rnr_events"), 0);
}

TEST(RpcBenchLocal, LatencyHasAllKeys) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  json result = RunLocal({});
  ExpectAllKeys(result);
  EXPECT_EQ(result["conditions"]["form"], "blocking");
  EXPECT_EQ(result["conditions"]["size_bytes"], 64);
}

TEST(RpcBenchLocal, ThroughputHasAllKeys) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  json result = RunLocal({"--mode=throughput"});
  ExpectAllKeys(result);
  EXPECT_EQ(result["conditions"]["concurrency"], 64);
}

TEST(RpcBenchLocal, UploadAndDownloadMoveTheirPayload) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  for (const char* mode : {"--mode=upload", "--mode=download"}) {
    SCOPED_TRACE(mode);
    json result = RunLocal({mode, "--size=2K"});
    ExpectAllKeys(result);
    EXPECT_DOUBLE_EQ(result["bytes_per_second"].get<double>(),
                     2048 * result["calls_per_second"].get<double>());
  }
}

// The same keys, whatever messages are.
TEST(RpcBenchLocal, FlatBuffersHaveAllKeys) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  for (const char* mode :
       {"--mode=latency", "--mode=throughput", "--mode=upload", "--mode=download"}) {
    SCOPED_TRACE(mode);
    const json result = RunLocal({"--codec=flatbuffers", mode, "--size=5K"});
    ExpectAllKeys(result);
    EXPECT_EQ(result["conditions"]["codec"], "flatbuffers");
    EXPECT_TRUE(result["protobuf_rtt_us"].is_null());
  }
}

TEST(RpcBenchLocal, BothCodecsInOneRun) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  for (const char* mode : {"--mode=latency", "--mode=throughput"}) {
    SCOPED_TRACE(mode);
    const json result = RunLocal({"--codec=both", mode});
    ExpectAllKeys(result);
    for (const char* key : {"protobuf_rtt_us", "rebuilt_rtt_us"}) {
      EXPECT_GT(result.at(key).at("p50").get<double>(), 0) << key;
    }
  }
}

TEST(RpcBenchLocal, OpenLoopAndManyCallers) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  ExpectAllKeys(RunLocal({"--rate=500", "--poll=adaptive"}));
  ExpectAllKeys(RunLocal({"--form=blocking", "--concurrency=3", "--poll=event"}));
  ExpectAllKeys(RunLocal({"--mode=throughput", "--threads=2", "--poll=event"}));
}

TEST(RpcBenchLocal, EndpointLayer) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  ExpectAllKeys(RunLocal({"--layer=endpoint"}));
  ExpectAllKeys(RunLocal({"--layer=endpoint", "--mode=throughput", "--concurrency=200"}));
}

TEST(RpcBenchLocal, StopsAfterSoManyCalls) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  EXPECT_EQ(RunLocal({"--calls=100"})["calls"], 100);
  EXPECT_EQ(RunLocal({"--calls=101", "--mode=throughput"})["calls"], 101);
}

TEST(RpcBenchLocal, TableNamesItsConditions) {
  if (!HasTwoCores()) GTEST_SKIP() << "rpc_bench local needs two cores";
  CommandResult result = RunCommand({RpcBench(), "local", "--seconds=0.1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Echo of 64 bytes, one call at a time"));
  EXPECT_THAT(result.out, HasSubstr("Conditions: "));
}

TEST(RpcBenchServe, ServesUntilItIsTold) {
  for (int signal : {SIGTERM, SIGINT}) {
    const std::string address = UniqueAddress("serve");
    Background server({RpcBench(), "serve", "--listen=" + address, "--poll=event"});
    EXPECT_THAT(server.FirstLine(), HasSubstr(address));
    CommandResult run = RunCommand(
        {RpcBench(), "run", "--target=" + address, "--poll=event", "--seconds=0.1", "--json"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    json result = json::parse(run.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(result["ratio_to_ceiling"].is_null()) << run.out;
    EXPECT_GT(result["calls"], 0) << run.out;
    EXPECT_EQ(server.EndWith(signal), 0);
  }
}

TEST(RpcBenchServe, AddressInUse) {
  const std::string address = UniqueAddress("in_use");
  Background server({RpcBench(), "serve", "--listen=" + address, "--poll=event"});
  server.FirstLine();
  CommandResult second = RunCommand({RpcBench(), "serve", "--listen=" + address});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("ALREADY_EXISTS"));
}

TEST(RpcBenchRun, NobodyThere) {
  CommandResult run = RunCommand({RpcBench(), "run", "--target=" + UniqueAddress("nobody")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(run.out, "");
}

TEST(RpcBenchRun, ServerKilledInTheMiddle) {
  const std::string address = UniqueAddress("killed");
  Background server({RpcBench(), "serve", "--listen=" + address, "--poll=event"});
  server.FirstLine();
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    server.EndWith(SIGKILL);
  });
  CommandResult run =
      RunCommand({RpcBench(), "run", "--target=" + address, "--seconds=30", "--poll=event"},
                 /*timeout_s=*/20);
  killer.join();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("UNAVAILABLE"));
}

TEST(RpcBenchRun, PayloadsOverTheSlotGoThePayloadPath) {
  const std::string address = UniqueAddress("large");
  Background server({RpcBench(), "serve", "--listen=" + address, "--poll=event"});
  server.FirstLine();
  for (const char* mode : {"--mode=upload", "--mode=download", "--mode=beside"}) {
    CommandResult run = RunCommand({RpcBench(), "run", "--target=" + address, mode, "--size=1M",
                                    "--poll=event", "--seconds=0.2"});
    EXPECT_EQ(run.exit_code, 0) << mode << run.err;
    EXPECT_THAT(run.out, HasSubstr("B/s")) << mode;  // However fast.
    EXPECT_EQ(run.out.find("p99 beside by alone") != std::string::npos,
              std::string(mode) == "--mode=beside");
  }
}

TEST(RpcBenchCommandLine, NonsenseIsExitCode2) {
  for (const std::vector<std::string>& argv :
       std::vector<std::vector<std::string>>{{RpcBench(), "sell"},
                                             {RpcBench(), "run"},
                                             {RpcBench(), "run", "--target=what"},
                                             {RpcBench(), "local", "--size=big"}}) {
    CommandResult result = RunCommand(argv);
    EXPECT_EQ(result.exit_code, 2) << argv.back();
    EXPECT_THAT(result.err, HasSubstr("rpc_bench: INVALID_ARGUMENT: ")) << argv.back();
  }
}

TEST(RpcBenchCommandLine, HelpListsTheCommands) {
  CommandResult help = RunCommand({RpcBench(), "help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("rpc_bench local"));
}

}  // namespace
}  // namespace verbena::bench
