// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/serve.h"

#include <signal.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_join.h"
#include "verbena/rpc/server.h"
#include "verbena/tools/rpc_bench/bench_service.h"
#include "verbena/tools/rpc_bench/child_process.h"
#include "verbena/tools/rpc_bench/cores.h"
#include "verbena/tools/rpc_bench/device.h"
#include "verbena/tools/rpc_bench/endpoint_echo_server.h"
#include "verbena/tools/rpc_bench/flat_bench_service.h"

namespace verbena::bench {
namespace {

// Signals that end the server, for sigwait: no handler, so nothing that a handler may not do.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void Wait() {
    int signal = 0;
    sigwait(&signals_, &signal);
  }

 private:
  sigset_t signals_;
};

void SayReady(const Options& options) {
  std::printf("rpc_bench serves %s (%s polling, %u thread%s); stop it with Ctrl-C\n",
              options.listen.c_str(), ToString(options.poll), options.threads,
              options.threads == 1 ? "" : "s");
  std::fflush(stdout);
}

absl::Status ServeRpc(const Options& options, Device& device, EndSignals& end) {
  BenchService service(absl::StrJoin(AllowedCores(), ","));
  FlatBenchService flat_service;
  ServerBuilder builder;
  builder.AddListeningPort(options.listen)
      .RegisterService(&service)
      .RegisterService(&flat_service)
      .AddDevice(&device);
  builder.options().poll.mode = ToPollMode(options.poll);
  builder.options().poller_count = options.threads;
  for (uint32_t i = 0; i < options.threads && !options.cpus.empty(); ++i) {
    builder.options().poller_cpus.push_back(options.cpus[i % options.cpus.size()]);
  }
  absl::StatusOr<std::unique_ptr<Server>> server = builder.BuildAndStart();
  if (!server.ok()) return server.status();
  service.set_server(server->get());
  SayReady(options);
  end.Wait();
  (*server)->Shutdown();
  return absl::OkStatus();
}

absl::Status ServeEndpoint(const Options& options, Device& device, EndSignals& end) {
  absl::StatusOr<std::unique_ptr<EndpointEchoServer>> server =
      EndpointEchoServer::Start(device, options);
  if (!server.ok()) return server.status();
  SayReady(options);
  end.Wait();
  return absl::OkStatus();
}

}  // namespace

absl::Status Serve(const Options& options) {
  EndSignals end;
  if (absl::Status owned = EndWithOwner(options.owner_pid); !owned.ok()) return owned;
  if (absl::Status pinned = PinThisThread(options.cpus); !pinned.ok()) return pinned;
  absl::StatusOr<std::shared_ptr<Device>> device = OpenDevice(options.listen, AddressUse::kListen);
  if (!device.ok()) return device.status();
  return options.layer == Layer::kRpc ? ServeRpc(options, **device, end)
                                      : ServeEndpoint(options, **device, end);
}

}  // namespace verbena::bench
