// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/options.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gflags/gflags.h"
#include "verbena/transport/address.h"

DEFINE_string(listen, "", "address to listen at, such as shm:bench");
DEFINE_string(target, "", "address of the server, such as shm:bench");
DEFINE_string(mode, "latency", "latency, throughput, upload or download");
DEFINE_string(layer, "rpc", "rpc, or endpoint (no calls, no Protobuf)");
DEFINE_string(codec, "protobuf", "protobuf, flatbuffers or both");
DEFINE_string(form, "", "blocking or callback; blocking when one call is in flight");
DEFINE_string(poll, "busy", "busy, adaptive or event");
DEFINE_string(size, "64", "payload bytes; K, M and G mean KiB, MiB and GiB");
DEFINE_uint32(concurrency, 0, "calls in flight; 64 for throughput, else 1");
DEFINE_uint32(threads, 1, "pollers of the server, channels of the client");
DEFINE_double(seconds, 2, "how long to measure");
DEFINE_uint64(calls, 0, "end after so many calls; 0 is no limit");
DEFINE_double(rate, 0, "calls per second in open loop; 0 is as fast as they return");
DEFINE_string(cpu, "", "cores to run on, such as 1 or 2,3; empty leaves it to the kernel");
DEFINE_bool(json, false, "print JSON");
DEFINE_int32(owner_pid, 0, "internal: end when this process ends");

namespace verbena::bench {
namespace {

constexpr uint64_t kSizeBytesMax = uint64_t{1} << 30;
// ChannelOptions::outstanding_calls_max goes no further.
constexpr uint32_t kConcurrencyPerThreadMax = 4096;
constexpr uint32_t kThreadsMax = 64;
// A thread per call in flight: more threads than this measure the scheduler.
constexpr uint32_t kBlockingConcurrencyMax = 256;

template <class T>
struct Choice {
  const char* name;
  T value;
};

constexpr std::array kCommands = {
    Choice<Command>{"help", Command::kHelp},
    Choice<Command>{"--help", Command::kHelp},
    Choice<Command>{"serve", Command::kServe},
    Choice<Command>{"run", Command::kRun},
    Choice<Command>{"local", Command::kLocal},
    Choice<Command>{"ceiling", Command::kCeiling},
    Choice<Command>{"ceiling_partner", Command::kCeilingPartner},
};
constexpr std::array kModes = {
    Choice<Mode>{"latency", Mode::kLatency},
    Choice<Mode>{"throughput", Mode::kThroughput},
    Choice<Mode>{"upload", Mode::kUpload},
    Choice<Mode>{"download", Mode::kDownload},
    Choice<Mode>{"beside", Mode::kBeside},
};
constexpr std::array kLayers = {
    Choice<Layer>{"rpc", Layer::kRpc},
    Choice<Layer>{"endpoint", Layer::kEndpoint},
};
constexpr std::array kCodecs = {
    Choice<Messages>{"protobuf", Messages::kProtobuf},
    Choice<Messages>{"flatbuffers", Messages::kFlatBuffers},
    Choice<Messages>{"both", Messages::kBoth},
};
constexpr std::array kForms = {
    Choice<Form>{"blocking", Form::kBlocking},
    Choice<Form>{"callback", Form::kCallback},
};
constexpr std::array kPolls = {
    Choice<Poll>{"busy", Poll::kBusy},
    Choice<Poll>{"adaptive", Poll::kAdaptive},
    Choice<Poll>{"event", Poll::kEvent},
};

// Which commands take which option. One bit per command.
constexpr uint32_t Bit(Command command) { return 1u << static_cast<int>(command); }
constexpr uint32_t kMeasures = Bit(Command::kRun) | Bit(Command::kLocal);
constexpr std::array kTakenBy = {
    Choice<uint32_t>{"listen", Bit(Command::kServe)},
    Choice<uint32_t>{"target", kMeasures},
    Choice<uint32_t>{"mode", kMeasures},
    Choice<uint32_t>{"codec", kMeasures},
    Choice<uint32_t>{"form", kMeasures},
    Choice<uint32_t>{"size", kMeasures},
    Choice<uint32_t>{"concurrency", kMeasures},
    Choice<uint32_t>{"seconds", kMeasures},
    Choice<uint32_t>{"calls", kMeasures},
    Choice<uint32_t>{"rate", kMeasures},
    Choice<uint32_t>{"layer", kMeasures | Bit(Command::kServe)},
    Choice<uint32_t>{"poll", kMeasures | Bit(Command::kServe)},
    Choice<uint32_t>{"threads", kMeasures | Bit(Command::kServe)},
    Choice<uint32_t>{"cpu",
                     Bit(Command::kRun) | Bit(Command::kServe) | Bit(Command::kCeilingPartner)},
    Choice<uint32_t>{"json", kMeasures | Bit(Command::kCeiling)},
    Choice<uint32_t>{"owner_pid", Bit(Command::kServe) | Bit(Command::kCeilingPartner)},
};

template <class T>
const Choice<T>* FindByName(std::span<const Choice<T>> choices, const std::string& name) {
  auto found =
      std::find_if(choices.begin(), choices.end(), [&](auto& c) { return name == c.name; });
  return found == choices.end() ? nullptr : &*found;
}

template <class T>
const char* NameOf(std::span<const Choice<T>> choices, T value) {
  for (const auto& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "?";
}

template <class T>
absl::Status Choose(const char* flag, const std::string& name, std::span<const Choice<T>> choices,
                    T* value) {
  if (const auto* choice = FindByName(choices, name)) {
    *value = choice->value;
    return absl::OkStatus();
  }
  std::string allowed;
  for (const auto& choice : choices) absl::StrAppend(&allowed, " ", choice.name);
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", name, ": must be one of", allowed));
}

absl::Status SetFlag(const std::string& name, const std::string& value) {
  if (gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty()) {
    gflags::CommandLineFlagInfo info = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, "=", value, ": not a value of type ", info.type));
  }
  return absl::OkStatus();
}

// gflags' own parser ends the process on an error and takes any flag of any library; this one
// returns a Status and takes what belongs to the command, and glog's flags.
absl::Status SetFlags(Command command, std::span<const std::string> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].rfind("--", 0) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", args[i], "\" is not an option; options look like --size=64"));
    }
    std::string name = args[i].substr(2);
    size_t equals = name.find('=');
    bool has_value = equals != std::string::npos;
    std::string value = has_value ? name.substr(equals + 1) : "";
    name = name.substr(0, equals);

    gflags::CommandLineFlagInfo info;
    if (!gflags::GetCommandLineFlagInfo(name.c_str(), &info)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": no such option; `rpc_bench help` lists them"));
    }
    const auto* taken = FindByName(std::span<const Choice<uint32_t>>(kTakenBy), name);
    if (taken != nullptr && (taken->value & Bit(command)) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": not an option of this command; see `rpc_bench help`"));
    }
    if (!has_value && info.type == "bool") {
      value = "true";
    } else if (!has_value) {
      if (i + 1 == args.size()) {
        return absl::InvalidArgumentError(absl::StrCat("--", name, ": needs a value"));
      }
      value = args[++i];
    }
    if (absl::Status set = SetFlag(name, value); !set.ok()) return set;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  std::string digits = text;
  uint64_t unit = 1;
  for (const auto& [suffix, bytes] :
       {Choice<uint64_t>{"K", 1 << 10}, Choice<uint64_t>{"M", 1 << 20},
        Choice<uint64_t>{"G", 1 << 30}}) {
    for (const char* rest : {"iB", ""}) {
      std::string ending = absl::StrCat(suffix, rest);
      if (unit == 1 && digits.size() > ending.size() && digits.ends_with(ending)) {
        digits.resize(digits.size() - ending.size());
        unit = bytes;
      }
    }
  }
  uint64_t count = 0;
  bool is_number =
      !digits.empty() && absl::ascii_isdigit(digits[0]) && absl::SimpleAtoi(digits, &count);
  if (!is_number || count > kSizeBytesMax / unit) {
    return absl::InvalidArgumentError(
        absl::StrCat("--size=", text, ": must be a number of bytes up to 1G, such as 64 or 4K"));
  }
  return count * unit;
}

absl::StatusOr<std::vector<int>> ParseCpus(const std::string& text) {
  std::vector<int> cpus;
  if (text.empty()) return cpus;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int cpu = -1;
    if (!absl::SimpleAtoi(part, &cpu) || cpu < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cpu=", text, ": must be core numbers, such as 1 or 2,3"));
    }
    cpus.push_back(cpu);
  }
  return cpus;
}

absl::Status CheckAddress(const char* flag, const std::string& text) {
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " is needed: an address such as shm:bench"));
  }
  absl::StatusOr<Address> address = Address::Parse(text);
  if (address.ok()) return absl::OkStatus();
  return absl::Status(address.status().code(),
                      absl::StrCat("--", flag, ": ", address.status().message()));
}

template <class T>
absl::Status CheckRange(const char* flag, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": must be between ", low, " and ", high));
}

// The options that only make sense together, and the defaults that follow from others.
absl::Status CompleteOptions(Options* options) {
  if (options->concurrency == 0) {
    options->concurrency = options->mode == Mode::kThroughput ? 64 : 1;
  }
  options->concurrency = std::max(options->concurrency, options->threads);
  if (options->codec == Messages::kBoth && options->mode != Mode::kLatency &&
      options->mode != Mode::kThroughput) {
    return absl::InvalidArgumentError(
        "--codec=both compares echoes: it is for --mode=latency and --mode=throughput");
  }
  if (options->codec != Messages::kProtobuf &&
      (options->mode == Mode::kBeside || options->layer == Layer::kEndpoint)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--codec=", ToString(options->codec), " is not for ",
        options->mode == Mode::kBeside ? "--mode=beside" : "--layer=endpoint, which has none"));
  }
  if (options->mode == Mode::kBeside) {
    if (options->threads > 1 || options->concurrency > 1 || options->rate > 0) {
      return absl::InvalidArgumentError(
          "--mode=beside measures one echo at a time on one channel: no --threads, --concurrency or "
          "--rate");
    }
    // A caller's own thread would share the core with the uploads'.
    options->form = Form::kCallback;
    return absl::OkStatus();
  }
  if (FLAGS_form.empty()) {
    bool one_each = options->concurrency == options->threads;
    options->form = one_each || options->rate > 0 ? Form::kBlocking : Form::kCallback;
  }
  if (options->rate > 0 && options->form == Form::kCallback) {
    return absl::InvalidArgumentError(
        "--rate needs --form=blocking: a call in open loop starts at its time and not when "
        "another one ends");
  }
  if (options->layer == Layer::kEndpoint &&
      (options->rate > 0 || options->mode == Mode::kUpload || options->mode == Mode::kDownload ||
       options->threads > 1 || options->poll != Poll::kBusy)) {
    return absl::InvalidArgumentError(
        "--layer=endpoint measures --mode=latency and --mode=throughput with --poll=busy and "
        "--threads=1, and has no --rate");
  }
  const uint32_t most = options->form == Form::kBlocking
                            ? kBlockingConcurrencyMax
                            : kConcurrencyPerThreadMax * options->threads;
  return CheckRange("concurrency", options->concurrency, 1u, most);
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args) {
  Options options;
  if (args.empty()) return options;
  const auto* command = FindByName(std::span<const Choice<Command>>(kCommands), args[0]);
  if (command == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", args[0], "\" is not a command; there are serve, run, local, ceiling and help"));
  }
  options.command = command->value;
  const bool asks_for_help = std::find(args.begin(), args.end(), "--help") != args.end();
  if (asks_for_help) options.command = Command::kHelp;
  if (options.command == Command::kHelp) return options;

  absl::StatusOr<uint64_t> size;
  absl::StatusOr<std::vector<int>> cpus;
  for (const auto& check : {
           absl::Status(SetFlags(options.command, std::span(args).subspan(1))),
           Choose("mode", FLAGS_mode, std::span<const Choice<Mode>>(kModes), &options.mode),
           Choose("layer", FLAGS_layer, std::span<const Choice<Layer>>(kLayers), &options.layer),
           Choose("codec", FLAGS_codec, std::span<const Choice<Messages>>(kCodecs),
                  &options.codec),
           Choose("poll", FLAGS_poll, std::span<const Choice<Poll>>(kPolls), &options.poll),
           FLAGS_form.empty()
               ? absl::OkStatus()
               : Choose("form", FLAGS_form, std::span<const Choice<Form>>(kForms), &options.form),
           CheckRange("seconds", FLAGS_seconds, 0.01, 3600.0),
           CheckRange("rate", FLAGS_rate, 0.0, 1e8),
           CheckRange("threads", FLAGS_threads, 1u, kThreadsMax),
           (size = ParseSize(FLAGS_size)).status(),
           (cpus = ParseCpus(FLAGS_cpu)).status(),
       }) {
    if (!check.ok()) return check;
  }
  options.listen = FLAGS_listen;
  options.target = FLAGS_target;
  options.size_bytes = *size;
  options.cpus = *cpus;
  options.concurrency = FLAGS_concurrency;
  options.threads = FLAGS_threads;
  options.seconds = FLAGS_seconds;
  options.calls_max = FLAGS_calls;
  options.rate = FLAGS_rate;
  options.json = FLAGS_json;
  options.owner_pid = FLAGS_owner_pid;

  absl::Status checked = CompleteOptions(&options);
  if (checked.ok() && options.command == Command::kServe) {
    checked = CheckAddress("listen", options.listen);
  }
  const bool has_target = options.command == Command::kLocal && !options.target.empty();
  if (checked.ok() && (options.command == Command::kRun || has_target)) {
    checked = CheckAddress("target", options.target);
  }
  if (!checked.ok()) return checked;
  return options;
}

std::string Usage() {
  return R"(rpc_bench: what Verbena costs on this machine, beside what the machine itself can do.

  rpc_bench local     measure against a server of its own, between two ceilings
  rpc_bench ceiling   raw shared memory alone: ping-pong, pipelined ring, memcpy
  rpc_bench serve     a server for others:     --listen=ADDR
  rpc_bench run       measure such a server:   --target=ADDR
  ADDR is shm:NAME on one host, or rdma:HOST:PORT. local takes one too, as --target, and measures
  over it in place of shared memory.

local and run:
  --mode=latency      64-byte echo, one call at a time (the default)
         throughput   echo, many calls in flight
         upload       a payload with each request
         download     a payload with each response
         beside       64-byte echo, alone and then beside uploads of --size on the same channel
  --size=BYTES        payload, such as 64, 4K or 1M (64)
  --concurrency=N     calls in flight, all threads together (64 for throughput, else 1)
  --seconds=S         how long to measure (2); the warm-up comes on top
  --calls=N           end after so many calls, if that is earlier
  --threads=T         channels of the client, each with a thread of its own (1)
  --rate=R            open loop: R calls per second, each timed from when it should have started
  --form=blocking     a thread per call in flight; the default for one call in flight
         callback     calls start again from their callbacks; the default for more
  --codec=protobuf    what messages are (the default)
          flatbuffers
          both        echo with FlatBuffers, of a message that is sent back as it is, and with
                      each message built anew; between two halves of the same with Protobuf
  --layer=rpc         generated stubs on both sides (the default)
          endpoint    two transport endpoints, no calls and no Protobuf
  --json              JSON in place of the table (ceiling too)

serve, local and run:
  --poll=busy         never sleep (the default)
         adaptive     spin a while, then sleep
         event        sleep as soon as there is nothing to do
  --threads=T         pollers of the server (1)
  --cpu=N[,N]         serve and run: cores to run on
)";
}

const char* ToString(Mode mode) { return NameOf(std::span<const Choice<Mode>>(kModes), mode); }
const char* ToString(Layer layer) { return NameOf(std::span<const Choice<Layer>>(kLayers), layer); }
const char* ToString(Messages codec) {
  return NameOf(std::span<const Choice<Messages>>(kCodecs), codec);
}
const char* ToString(Form form) { return NameOf(std::span<const Choice<Form>>(kForms), form); }
const char* ToString(Poll poll) { return NameOf(std::span<const Choice<Poll>>(kPolls), poll); }

}  // namespace verbena::bench
