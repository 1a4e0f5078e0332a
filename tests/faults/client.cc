// SPDX-License-Identifier: Apache-2.0
//
// The client of the fault tests: one channel with so many calls in flight, in the callback form.
// Commands: "go" (from here on calls are made), "stop", "fault TIME", "healed TIME", "end".

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "tests/faults/faults.verbena.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tests/faults/content.h"
#include "verbena/tests/faults/options.h"
#include "verbena/tests/faults/script_link.h"
#include "verbena/tests/faults/tally.h"

namespace verbena::faults {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// One call at a time, and the next when it has ended.
struct Lane {
  uint64_t id = 0;
  ::faults::Question question;
  ::faults::Answer answer;
  std::unique_ptr<ClientContext> context;
  SteadyTime started;
  SteadyTime resume_at;
  // False: the above is the main thread's; true: the call's, which then is the channel's.
  std::atomic<bool> busy{false};
};

class FaultClient {
 public:
  explicit FaultClient(const Options& options)
      : options_(options),
        link_(options.name),
        device_(OpenDevice(options)),
        lanes_(options.in_flight),
        next_id_(options.first_id) {
    ChannelOptions channel_options;
    channel_options.endpoint.detection_time = options.detection_time;
    if (device_ != nullptr) channel_options.devices = {device_.get()};
    channel_ = CreateChannel(options.target, channel_options);
    stub_ = ::faults::Faults::NewStub(channel_);
  }

  void Run() {
    constexpr int kTicksPerStatus = 5;
    for (int tick = 0; !ended_; ++tick) {
      while (auto command = link_.TakeCommand()) Obey(*command);
      StartIdleLanes();
      if (tick % kTicksPerStatus == 0) Publish(/*ended=*/false);
      std::this_thread::sleep_for(milliseconds(10));
    }
    stub_.reset();  // Its reference is the last but one.
    Publish(/*ended=*/true);
    channel_.reset();
  }

 private:
  void Obey(const Command& command) {
    LOG(INFO) << "command: " << command.word;
    if (command.word == "go") {
      going_ = true;
    } else if (command.word == "stop") {
      going_ = false;
    } else if (command.word == "fault") {
      tally_.NoteFault(command.time);
    } else if (command.word == "healed") {
      tally_.NoteHealed(command.time);
    } else if (command.word == "end") {
      going_ = false;
      ended_ = true;
    }
  }

  void StartIdleLanes() {
    const SteadyTime now = steady_clock::now();
    for (Lane& lane : lanes_) {
      if (going_ && !lane.busy && now >= lane.resume_at) {
        lane.busy = true;
        Start(lane);
      }
    }
  }

  void Start(Lane& lane) {
    lane.id = next_id_++;
    lane.question.set_id(lane.id);
    lane.question.set_content(Content(lane.id, Role::kQuestion));
    lane.context = std::make_unique<ClientContext>();
    lane.context->set_timeout(options_.deadline);
    lane.started = steady_clock::now();
    tally_.NoteStarted();
    stub_->async()->Ask(lane.context.get(), &lane.question, &lane.answer,
                        [this, &lane](absl::Status status) { OnEnded(lane, status); });
  }

  void OnEnded(Lane& lane, const absl::Status& status) {
    const bool wrong = status.ok() && (lane.answer.id() != lane.id ||
                                       lane.answer.content() != Content(lane.id, Role::kAnswer));
    tally_.NoteEnded(lane.started, status, wrong);
    if (status.ok() && going_) {
      Start(lane);
      return;
    }
    lane.resume_at = steady_clock::now() + (status.ok() ? milliseconds(0) : options_.pause);
    lane.busy = false;
  }

  void Publish(bool ended) {
    tally_.Publish(link_);
    const ChannelStatistics statistics = channel_->statistics();
    link_.Set("connects", statistics.connects);
    link_.Set("disconnects", statistics.disconnects);
    link_.Set("peers_lost", statistics.peers_lost);
    link_.Set("receiver_not_ready", statistics.receiver_not_ready);
    link_.Set("ended", ended);
    link_.PublishStatus();
  }

  const Options options_;
  ScriptLink link_;
  const std::unique_ptr<Device> device_;
  Tally tally_;
  std::vector<Lane> lanes_;
  std::atomic<uint64_t> next_id_;
  std::atomic<bool> going_{false};
  bool ended_ = false;
  // Last, so that no call is left when the rest goes.
  std::shared_ptr<Channel> channel_;
  std::unique_ptr<::faults::Faults::Stub> stub_;
};

}  // namespace

int RunClient(const Options& options) {
  FaultClient(options).Run();
  return 0;
}

}  // namespace verbena::faults
