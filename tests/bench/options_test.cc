// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/options.h"

#include <string>
#include <vector>

#include "gflags/gflags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace verbena::bench {
namespace {

using testing::HasSubstr;

// gflags are global, so every parse starts from the defaults again.
absl::StatusOr<Options> Parse(const std::vector<std::string>& args) {
  gflags::FlagSaver restore;
  return ParseOptions(args);
}

std::string ErrorOf(const std::vector<std::string>& args) {
  absl::StatusOr<Options> options = Parse(args);
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << options.status();
  return std::string(options.status().message());
}

TEST(Options, NothingOrHelpAsksForHelp) {
  EXPECT_EQ(Parse({})->command, Command::kHelp);
  EXPECT_EQ(Parse({"help"})->command, Command::kHelp);
  EXPECT_EQ(Parse({"--help"})->command, Command::kHelp);
  EXPECT_EQ(Parse({"local", "--help"})->command, Command::kHelp);
}

TEST(Options, UnknownCommandNamesTheOnesThereAre) {
  EXPECT_THAT(ErrorOf({"bench"}), HasSubstr("serve, run, local, ceiling"));
}

TEST(Options, LatencyIsOneBlockingCallOf64Bytes) {
  absl::StatusOr<Options> options = Parse({"local"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->mode, Mode::kLatency);
  EXPECT_EQ(options->size_bytes, 64u);
  EXPECT_EQ(options->concurrency, 1u);
  EXPECT_EQ(options->form, Form::kBlocking);
  EXPECT_EQ(options->poll, Poll::kBusy);
  EXPECT_EQ(options->layer, Layer::kRpc);
}

TEST(Options, ThroughputIs64CallbacksInFlight) {
  absl::StatusOr<Options> options = Parse({"local", "--mode=throughput"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->concurrency, 64u);
  EXPECT_EQ(options->form, Form::kCallback);
}

TEST(Options, EveryOptionOfRun) {
  absl::StatusOr<Options> options =
      Parse({"run", "--target=shm:x", "--mode=upload", "--size=4K", "--concurrency", "8",
             "--seconds=0.5", "--threads=2", "--calls=1000", "--form=blocking", "--poll=event",
             "--cpu=0,1", "--rate=2500.5", "--json"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->command, Command::kRun);
  EXPECT_EQ(options->target, "shm:x");
  EXPECT_EQ(options->mode, Mode::kUpload);
  EXPECT_EQ(options->size_bytes, 4096u);
  EXPECT_EQ(options->concurrency, 8u);
  EXPECT_EQ(options->seconds, 0.5);
  EXPECT_EQ(options->threads, 2u);
  EXPECT_EQ(options->calls_max, 1000u);
  EXPECT_EQ(options->form, Form::kBlocking);
  EXPECT_EQ(options->poll, Poll::kEvent);
  EXPECT_EQ(options->cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(options->rate, 2500.5);
  EXPECT_TRUE(options->json);
}

TEST(Options, SizesTakeUnits) {
  EXPECT_EQ(Parse({"local", "--size=0"})->size_bytes, 0u);
  EXPECT_EQ(Parse({"local", "--size=64KiB"})->size_bytes, 65536u);
  EXPECT_EQ(Parse({"local", "--size=3M"})->size_bytes, 3u << 20);
  EXPECT_EQ(Parse({"local", "--size=1G"})->size_bytes, 1u << 30);
}

TEST(Options, BadSizesAreRefused) {
  for (const char* size : {"", "-1", "+1", " 1", "x", "K", "1KK", "1T", "2G", "1.5M",
                           "18446744073709551616", "18446744073709551615K"}) {
    EXPECT_THAT(ErrorOf({"local", std::string("--size=") + size}), HasSubstr("--size=")) << size;
  }
}

TEST(Options, WrongValuesNameTheOptionAndWhatIsAllowed) {
  EXPECT_THAT(ErrorOf({"local", "--mode=fast"}),
              HasSubstr("latency throughput upload download beside"));
  EXPECT_THAT(ErrorOf({"local", "--codec=json"}), HasSubstr("protobuf flatbuffers both"));
  EXPECT_THAT(ErrorOf({"local", "--codec=both", "--mode=upload"}), HasSubstr("--mode=latency"));
  EXPECT_THAT(ErrorOf({"local", "--codec=flatbuffers", "--mode=beside"}),
              HasSubstr("--mode=beside"));
  EXPECT_THAT(ErrorOf({"local", "--codec=flatbuffers", "--layer=endpoint"}), HasSubstr("--layer"));
  EXPECT_THAT(ErrorOf({"local", "--form=x"}), HasSubstr("blocking callback"));
  EXPECT_THAT(ErrorOf({"local", "--poll=x"}), HasSubstr("busy adaptive event"));
  EXPECT_THAT(ErrorOf({"local", "--layer=x"}), HasSubstr("rpc endpoint"));
  EXPECT_THAT(ErrorOf({"local", "--seconds=0"}), HasSubstr("--seconds=0"));
  EXPECT_THAT(ErrorOf({"local", "--seconds=nan"}), HasSubstr("--seconds"));
  EXPECT_THAT(ErrorOf({"local", "--threads=0"}), HasSubstr("between 1 and 64"));
  EXPECT_THAT(ErrorOf({"local", "--concurrency=many"}), HasSubstr("--concurrency=many"));
  EXPECT_THAT(ErrorOf({"local", "--concurrency=5000"}), HasSubstr("between 1 and 4096"));
  EXPECT_THAT(ErrorOf({"local", "--rate=-1"}), HasSubstr("--rate=-1"));
  EXPECT_THAT(ErrorOf({"run", "--target=shm:x", "--cpu=one"}), HasSubstr("--cpu=one"));
}

TEST(Options, OptionsThatAreNone) {
  EXPECT_THAT(ErrorOf({"local", "--bogus=1"}), HasSubstr("--bogus: no such option"));
  EXPECT_THAT(ErrorOf({"local", "64"}), HasSubstr("\"64\" is not an option"));
  EXPECT_THAT(ErrorOf({"local", "--size"}), HasSubstr("--size: needs a value"));
}

TEST(Options, OptionsOfAnotherCommandAreRefused) {
  EXPECT_THAT(ErrorOf({"run", "--target=shm:x", "--listen=shm:x"}), HasSubstr("--listen"));
  EXPECT_THAT(ErrorOf({"serve", "--listen=shm:x", "--size=64"}), HasSubstr("--size"));
  EXPECT_THAT(ErrorOf({"ceiling", "--target=shm:x"}), HasSubstr("--target"));
  EXPECT_EQ(Parse({"local", "--target=rdma:10.1.0.1:7471"})->target, "rdma:10.1.0.1:7471");
  EXPECT_THAT(ErrorOf({"ceiling", "--seconds=1"}), HasSubstr("--seconds"));
}

TEST(Options, AddressesAreCheckedEarly) {
  EXPECT_THAT(ErrorOf({"run"}), HasSubstr("--target is needed"));
  EXPECT_THAT(ErrorOf({"serve"}), HasSubstr("--listen is needed"));
  EXPECT_THAT(ErrorOf({"run", "--target=nonsense"}), HasSubstr("--target: "));
  EXPECT_THAT(ErrorOf({"serve", "--listen=shm:a/b"}), HasSubstr("--listen: "));
}

TEST(Options, OpenLoopIsBlocking) {
  EXPECT_EQ(Parse({"local", "--rate=1000", "--concurrency=4"})->form, Form::kBlocking);
  EXPECT_THAT(ErrorOf({"local", "--rate=1000", "--form=callback"}), HasSubstr("--form=blocking"));
}

TEST(Options, EndpointLayerMeasuresEchoesOnly) {
  EXPECT_TRUE(Parse({"local", "--layer=endpoint", "--mode=throughput"}).ok());
  EXPECT_THAT(ErrorOf({"local", "--layer=endpoint", "--mode=upload"}), HasSubstr("endpoint"));
  EXPECT_THAT(ErrorOf({"local", "--layer=endpoint", "--rate=10"}), HasSubstr("endpoint"));
}

TEST(Options, EveryThreadGetsACall) { EXPECT_EQ(Parse({"local", "--threads=3"})->concurrency, 3u); }

}  // namespace
}  // namespace verbena::bench
