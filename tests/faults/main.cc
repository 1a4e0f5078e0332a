// SPDX-License-Identifier: Apache-2.0
//
//   fault_trial server TARGET NAME [device=NAME] [detection_ms=N]
//   fault_trial client TARGET NAME [device=NAME] [detection_ms=N] [in_flight=N] [first_id=N]
//
// A server, or a client that keeps calls in flight; a script breaks things between them (faults.sh,
// script_link.h). Both note what happens and judge nothing: that is the script's.

#include <cstdlib>
#include <string>
#include <string_view>

#include "glog/logging.h"
#include "verbena/tests/faults/options.h"
#include "verbena/tests/support/must.h"
#include "verbena/transport/rdma/factory.h"

namespace {

void Apply(const std::string& argument, verbena::faults::Options* options) {
  const size_t equals = argument.find('=');
  CHECK_NE(equals, std::string::npos) << argument;
  const std::string_view name = std::string_view(argument).substr(0, equals);
  const std::string text = argument.substr(equals + 1);
  const long value = std::strtol(text.c_str(), nullptr, 10);
  if (name == "device") {
    options->device = text;
  } else if (name == "detection_ms") {
    options->detection_time = std::chrono::milliseconds(value);
  } else if (name == "in_flight") {
    options->in_flight = static_cast<uint32_t>(value);
  } else if (name == "first_id") {
    options->first_id = static_cast<uint64_t>(value);
  } else {
    LOG(FATAL) << "unknown option: " << argument;
  }
}

}  // namespace

std::unique_ptr<verbena::Device> verbena::faults::OpenDevice(const Options& options) {
  if (options.device.empty()) return nullptr;
  return Must(CreateRdmaDevice({.device = options.device}));
}

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  const std::string role = argc > 1 ? argv[1] : "";
  CHECK(argc >= 4 && (role == "server" || role == "client"))
      << "usage: fault_trial server|client TARGET NAME [OPTION=VALUE...]";
  verbena::faults::Options options;
  options.target = argv[2];
  options.name = argv[3];
  for (int i = 4; i < argc; ++i) Apply(argv[i], &options);
  return role == "server" ? verbena::faults::RunServer(options)
                          : verbena::faults::RunClient(options);
}
