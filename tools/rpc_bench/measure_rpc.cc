// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/measure_rpc.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verbena/rpc/verbena.h"
#include "verbena/tools/rpc_bench/allocation_counter.h"
#include "verbena/tools/rpc_bench/blocking_run.h"
#include "verbena/tools/rpc_bench/callback_run.h"
#include "verbena/tools/rpc_bench/device.h"
#include "verbena/tools/rpc_bench/operations.h"
#include "verbena/tools/rpc_bench/usage.h"
#include "verbena/tools/rpc_bench/warm_up_and_measure.h"

namespace verbena::bench {
namespace {

constexpr std::chrono::seconds kConnectTimeout(3);

// The channels to the server, all connected.
class Client {
 public:
  static absl::StatusOr<Client> Connect(const Options& options, Device& device) {
    ChannelOptions channel_options;
    channel_options.devices = {&device};
    channel_options.poll.mode = ToPollMode(options.poll);
    // One more for Stats.
    channel_options.outstanding_calls_max =
        std::min(4096u, std::max(options.concurrency + 1, channel_options.outstanding_calls_max));
    Client client;
    for (uint32_t i = 0; i < options.threads; ++i) {
      client.channels_.push_back(CreateChannel(options.target, channel_options));
      absl::Status connected = client.channels_.back()->WaitForConnected(kConnectTimeout);
      if (!connected.ok()) return connected;
      client.stubs_.push_back(Bench::NewStub(client.channels_.back()));
    }
    return client;
  }

  std::vector<Bench::Stub*> stubs() const {
    std::vector<Bench::Stub*> stubs;
    for (const auto& stub : stubs_) stubs.push_back(stub.get());
    return stubs;
  }

  UsageNow ClientUsage() const {
    UsageNow usage = ProcessUsage();
    for (const auto& channel : channels_) {
      usage.rnr_events += channel->statistics().receiver_not_ready;
    }
    return usage;
  }

  absl::Status ServerUsage(UsageNow* usage, std::string* cores) {
    ClientContext context;
    context.set_timeout(kConnectTimeout);
    StatsResponse stats;
    absl::Status status = stubs_[0]->Stats(&context, StatsRequest(), &stats);
    if (!status.ok()) return status;
    usage->cpu_ns = stats.cpu_ns();
    if (stats.counts_allocations()) usage->allocations = stats.allocations();
    usage->rnr_events = stats.receiver_not_ready();
    *cores = stats.cores();
    return absl::OkStatus();
  }

 private:
  std::vector<std::shared_ptr<Channel>> channels_;
  std::vector<std::unique_ptr<Bench::Stub>> stubs_;
};

// What Protobuf itself allocates when the messages of a call are serialised, and parsed into
// messages that are used again, as both sides do.
template <class Operation>
std::optional<double> ProtobufAllocations(uint64_t bytes) {
  // Enough to see what happens now and then, within a fraction of a second.
  const int rounds = static_cast<int>(std::clamp<uint64_t>((64 << 20) / (bytes + 1), 2, 1000));
  typename Operation::Request filled, other;
  Operation::Fill(Operation::MakePayload(bytes), &filled);
  auto& request = Operation::MessageOf(filled);
  auto& parsed = Operation::MessageOf(other);
  std::string wire(request.ByteSizeLong(), '\0');
  uint8_t* const data = reinterpret_cast<uint8_t*>(wire.data());
  auto round = [&] {
    static_cast<void>(request.ByteSizeLong());
    request.SerializeWithCachedSizesToArray(data);
    static_cast<void>(parsed.ParseFromArray(wire.data(), static_cast<int>(wire.size())));
  };
  round();  // Reserves what is used again.
  const std::optional<uint64_t> before = AllocationCount();
  for (int i = 0; i < rounds; ++i) round();
  const std::optional<uint64_t> after = AllocationCount();
  if (!before.has_value() || !after.has_value()) return std::nullopt;
  return static_cast<double>(*after - *before) / rounds;
}

template <class Operation>
absl::StatusOr<Measurement> MeasureOperation(const Options& options, Device& device) {
  Measurement measurement;
  // Before there is any other thread whose allocations would be counted.
  measurement.result.protobuf_allocations = ProtobufAllocations<Operation>(options.size_bytes);
  absl::StatusOr<Client> client = Client::Connect(options, device);
  if (!client.ok()) return client.status();
  absl::Status status;
  if (options.form == Form::kBlocking) {
    BlockingRun<Operation> run(options, client->stubs());
    status = WarmUpAndMeasure(options, *client, run, &measurement);
  } else {
    CallbackRun<Operation> run(options, client->stubs());
    status = WarmUpAndMeasure(options, *client, run, &measurement);
  }
  if (!status.ok()) return status;
  return measurement;
}

}  // namespace

absl::StatusOr<Measurement> MeasureRpc(const Options& options, Device& device) {
  switch (options.mode) {
    case Mode::kLatency:
    case Mode::kThroughput:
      return MeasureOperation<EchoOperation>(options, device);
    case Mode::kUpload:
      return MeasureOperation<UploadOperation>(options, device);
    case Mode::kDownload:
      return MeasureOperation<DownloadOperation>(options, device);
  }
  return absl::InternalError("a mode that is none");
}

}  // namespace verbena::bench
