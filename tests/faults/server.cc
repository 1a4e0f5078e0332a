// SPDX-License-Identifier: Apache-2.0
//
// The server of the fault tests. Commands: "fault TIME", "end".

#include <atomic>
#include <thread>

#include "glog/logging.h"
#include "tests/faults/faults.verbena.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tests/faults/content.h"
#include "verbena/tests/faults/executions.h"
#include "verbena/tests/faults/options.h"
#include "verbena/tests/faults/script_link.h"
#include "verbena/tests/support/must.h"

namespace verbena::faults {
namespace {

using std::chrono::milliseconds;

class FaultsService final : public ::faults::Faults::Service {
 public:
  explicit FaultsService(const std::string& file) : executions_(file) {}

  absl::Status Ask(ServerContext*, const ::faults::Question* question,
                   ::faults::Answer* answer) override {
    ++executed;
    if (!executions_.Count(question->id())) ++executed_twice;
    if (question->content() != Content(question->id(), Role::kQuestion)) ++wrong_questions;
    answer->set_id(question->id());
    answer->set_content(Content(question->id(), Role::kAnswer));
    return absl::OkStatus();
  }

  std::atomic<uint64_t> executed{0};
  std::atomic<uint64_t> executed_twice{0};
  std::atomic<uint64_t> wrong_questions{0};

 private:
  Executions executions_;
};

class FaultServer {
 public:
  explicit FaultServer(const Options& options)
      : link_(options.name), device_(OpenDevice(options)), service_(options.name + ".executions") {
    ServerBuilder builder;
    builder.AddListeningPort(options.target).RegisterService(&service_);
    builder.options().endpoint.detection_time = options.detection_time;
    if (device_ != nullptr) builder.AddDevice(device_.get());
    server_ = Must(builder.BuildAndStart());
  }

  void Run() {
    constexpr int kTicksPerStatus = 5;
    for (int tick = 0; !ended_; ++tick) {
      while (auto command = link_.TakeCommand()) Obey(*command);
      Watch();
      if (tick % kTicksPerStatus == 0) Publish(/*ended=*/false);
      std::this_thread::sleep_for(milliseconds(10));
    }
    server_->Shutdown();
    Watch();
    Publish(/*ended=*/true);
  }

 private:
  void Obey(const Command& command) {
    LOG(INFO) << "command: " << command.word;
    if (command.word == "fault") {
      fault_ = command.time;
      left_alone_ms_ = -1;
    } else if (command.word == "end") {
      ended_ = true;
    }
  }

  void Watch() {
    if (left_alone_ms_ >= 0 || server_->statistics().connections != 0) return;
    left_alone_ms_ =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - fault_).count();
  }

  void Publish(bool ended) {
    const ServerStatistics statistics = server_->statistics();
    link_.Set("connections", statistics.connections);
    link_.Set("connections_accepted", statistics.connections_accepted);
    link_.Set("connections_refused", statistics.connections_refused);
    link_.Set("peers_lost", statistics.peers_lost);
    link_.Set("protocol_errors", statistics.protocol_errors);
    link_.Set("receiver_not_ready", statistics.receiver_not_ready);
    link_.Set("executed", service_.executed);
    link_.Set("executed_twice", service_.executed_twice);
    link_.Set("wrong_questions", service_.wrong_questions);
    // From the last fault until no connection was left; -1: there is one still.
    link_.Set("left_alone_ms", left_alone_ms_);
    link_.Set("ended", ended);
    link_.PublishStatus();
  }

  ScriptLink link_;
  const std::unique_ptr<Device> device_;
  FaultsService service_;
  std::unique_ptr<Server> server_;
  bool ended_ = false;
  SteadyTime fault_ = std::chrono::steady_clock::now();
  int64_t left_alone_ms_ = -1;
};

}  // namespace

int RunServer(const Options& options) {
  FaultServer(options).Run();
  return 0;
}

}  // namespace verbena::faults
