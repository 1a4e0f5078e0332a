// SPDX-License-Identifier: Apache-2.0
//
// The command line of rpc_bench: one command, then options, checked in one place. A value; reading
// it is safe from any thread, parsing it belongs to the start of main().

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace verbena::bench {

enum class Command {
  kHelp,
  kServe,           // A server that others measure against.
  kRun,             // Measures against a server that runs already.
  kLocal,           // Measures against a server of its own, between two ceilings.
  kCeiling,         // What the machine itself can do.
  kCeilingPartner,  // Internal: the second process of a ceiling.
};

enum class Mode {
  kLatency,     // Echo, one call at a time.
  kThroughput,  // Echo, many calls in flight.
  kUpload,      // A payload with the request, a tiny answer.
  kDownload,    // A tiny request, a payload with the answer.
  kBeside,      // Echo of 64 bytes, alone and beside uploads on the same channel.
};

enum class Layer {
  kRpc,       // Generated stubs on both sides.
  kEndpoint,  // Two transport endpoints: no calls, no Protobuf.
};

enum class Messages {
  kProtobuf,
  kFlatBuffers,
  kBoth,  // Echo with FlatBuffers, between two halves of the same with Protobuf.
};

enum class Form {
  kBlocking,  // A thread per call in flight; the caller itself drives the channel.
  kCallback,  // All calls in flight are started again from their callbacks.
};

enum class Poll { kAdaptive, kBusy, kEvent };

struct Options {
  Command command = Command::kHelp;
  std::string listen;
  std::string target;
  Mode mode = Mode::kLatency;
  Layer layer = Layer::kRpc;
  Messages codec = Messages::kProtobuf;
  Form form = Form::kBlocking;
  Poll poll = Poll::kBusy;
  uint64_t size_bytes = 64;
  uint32_t concurrency = 1;  // Calls in flight, all threads together.
  uint32_t threads = 1;      // serve: pollers. run: channels, each with a poller. local: both.
  double seconds = 2;        // Of measuring; the warm-up comes on top.
  uint64_t calls_max = 0;    // Ends the measurement earlier; 0 is no limit.
  double rate = 0;           // Calls per second in open loop; 0 is closed loop.
  std::vector<int> cpus;     // Empty: wherever the kernel likes.
  bool json = false;
  int owner_pid = 0;  // Internal: end when this process ends; 0 is nobody.
};

// `args` are the arguments after the program's name. Errors: INVALID_ARGUMENT that names the
// option, the value and what is allowed.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args);

// What `help` prints.
std::string Usage();

const char* ToString(Mode mode);
const char* ToString(Layer layer);
const char* ToString(Messages codec);
const char* ToString(Form form);
const char* ToString(Poll poll);

}  // namespace verbena::bench
