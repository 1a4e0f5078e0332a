// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/measure_rpc.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "verbena/rpc/verbena.h"
#include "verbena/tools/rpc_bench/allocation_counter.h"
#include "verbena/tools/rpc_bench/blocking_run.h"
#include "verbena/tools/rpc_bench/callback_run.h"
#include "verbena/tools/rpc_bench/device.h"
#include "verbena/tools/rpc_bench/flat_operations.h"
#include "verbena/tools/rpc_bench/operations.h"
#include "verbena/tools/rpc_bench/percentile.h"
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
    }
    client.stub_ = Bench::NewStub(client.channels_[0]);
    return client;
  }

  const std::vector<std::shared_ptr<Channel>>& channels() const { return channels_; }

  UsageNow ClientUsage() const {
    UsageNow usage = ProcessUsage();
    for (const auto& channel : channels_) {
      usage.rnr_events += channel->statistics().receiver_not_ready;
    }
    return usage;
  }

  uint64_t PayloadBytesSent() const {
    uint64_t bytes = 0;
    for (const auto& channel : channels_) bytes += channel->statistics().payload_bytes_sent;
    return bytes;
  }

  absl::Status ServerUsage(UsageNow* usage, std::string* cores) {
    ClientContext context;
    context.set_timeout(kConnectTimeout);
    StatsResponse stats;
    absl::Status status = stub_->Stats(&context, StatsRequest(), &stats);
    if (!status.ok()) return status;
    usage->cpu_ns = stats.cpu_ns();
    if (stats.counts_allocations()) usage->allocations = stats.allocations();
    usage->rnr_events = stats.receiver_not_ready();
    *cores = stats.cores();
    return absl::OkStatus();
  }

 private:
  std::vector<std::shared_ptr<Channel>> channels_;
  std::unique_ptr<Bench::Stub> stub_;
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

template <class Operation, class Then>
absl::Status WithRun(const Options& options, Client& client, Then then) {
  if (options.form == Form::kBlocking) {
    BlockingRun<Operation> run(options, client.channels());
    return then(run);
  }
  CallbackRun<Operation> run(options, client.channels());
  return then(run);
}

template <class Operation>
absl::StatusOr<Measurement> MeasureOperation(const Options& options, Device& device) {
  Measurement measurement;
  if constexpr (requires { Operation::MessageOf; }) {
    // Before there is any other thread whose allocations would be counted.
    measurement.result.protobuf_allocations = ProtobufAllocations<Operation>(options.size_bytes);
  }
  absl::StatusOr<Client> client = Client::Connect(options, device);
  if (!client.ok()) return client.status();
  const absl::Status status = WithRun<Operation>(options, *client, [&](auto& run) {
    return WarmUpAndMeasure(options, *client, run, &measurement);
  });
  if (!status.ok()) return status;
  return measurement;
}

Latency LatencyOf(const PassResult& pass) {
  return {PercentileUs(pass.latency_ns, 50), PercentileUs(pass.latency_ns, 99),
          PercentileUs(pass.latency_ns, 99.9), PercentileUs(pass.latency_ns, 100)};
}

// FlatBuffers between two halves of Protobuf: what changes in the machine meanwhile, changes for
// both.
absl::StatusOr<Measurement> MeasureBoth(const Options& options, Device& device) {
  Measurement measurement;
  absl::StatusOr<Client> client = Client::Connect(options, device);
  if (!client.ok()) return client.status();
  PassLimits half = PassLimits::Measurement(options);
  half.seconds /= 2;
  auto protobuf = std::make_unique<PassResult>(), rebuilt = std::make_unique<PassResult>();
  // Adds half a measurement to `total`.
  const auto measure_half = [&](auto& run, PassResult* total) {
    auto pass = std::make_unique<PassResult>();
    absl::Status status = run.Pass(PassLimits::WarmUp(options), pass.get());
    if (status.ok()) status = run.Pass(half, pass.get());
    total->latency_ns.Merge(pass->latency_ns);
    return status;
  };
  const auto measure_protobuf = [&] {
    return WithRun<EchoOperation>(options, *client,
                                  [&](auto& run) { return measure_half(run, protobuf.get()); });
  };
  absl::Status status = measure_protobuf();
  if (status.ok()) {
    status = WithRun<FlatEchoOperation>(options, *client, [&](auto& run) {
      return WarmUpAndMeasure(options, *client, run, &measurement);
    });
  }
  if (status.ok()) {
    status = WithRun<FlatRebuildOperation>(
        options, *client, [&](auto& run) { return measure_half(run, rebuilt.get()); });
  }
  if (status.ok()) status = measure_protobuf();
  if (!status.ok()) return status;
  measurement.result.protobuf = LatencyOf(*protobuf);
  measurement.result.rebuilt = LatencyOf(*rebuilt);
  return measurement;
}

// Uploads on a channel, one after the other, until it is told to stop.
class Uploads {
 public:
  Uploads(Bench::Stub& stub, uint64_t bytes) : stub_(stub), bytes_(bytes) {
    UploadOperation::Fill(UploadOperation::MakePayload(bytes), &request_);
    Start();
  }
  // Waits until the first one is over: a first touch of memory is no steady state.
  void AwaitFirst() { first_.acquire(); }
  // Waits for the last one. Errors: of the first that failed.
  absl::Status Stop() {
    stop_.store(true);
    ended_.acquire();
    return status_;
  }

 private:
  void Start() {
    context_.emplace();
    UploadOperation::Start(stub_, &*context_, &request_, &response_,
                           [this](absl::Status status) { OnDone(std::move(status)); });
  }
  // On the channel's thread.
  void OnDone(absl::Status status) {
    status_ = status.ok() ? CheckBytesMoved(response_.bytes(), bytes_) : std::move(status);
    if (!std::exchange(first_is_over_, true)) first_.release();
    if (stop_.load() || !status_.ok()) {
      ended_.release();
    } else {
      Start();
    }
  }

  Bench::Stub& stub_;
  const uint64_t bytes_;
  PlacedUploadRequest request_;
  UploadResponse response_;
  std::optional<ClientContext> context_;
  std::atomic<bool> stop_{false};
  bool first_is_over_ = false;
  std::binary_semaphore first_{0};
  std::binary_semaphore ended_{0};
  absl::Status status_;
};

// One echo at a time, alone and beside uploads on the same channel, in one run.
absl::StatusOr<Measurement> MeasureBeside(const Options& options, Device& device) {
  Measurement measurement;
  absl::StatusOr<Client> client = Client::Connect(options, device);
  if (!client.ok()) return client.status();
  Options echo = options;
  echo.size_bytes = 64;
  CallbackRun<EchoOperation> run(echo, client->channels());
  auto alone = std::make_unique<PassResult>();
  absl::Status status = run.Pass(PassLimits::WarmUp(options), alone.get());
  if (status.ok()) status = run.Pass(PassLimits::Measurement(options), alone.get());
  if (!status.ok()) return status;

  const std::unique_ptr<Bench::Stub> stub = Bench::NewStub(client->channels()[0]);
  Uploads uploads(*stub, options.size_bytes);
  uploads.AwaitFirst();
  const uint64_t sent_before = client->PayloadBytesSent();
  status = WarmUpAndMeasure(echo, *client, run, &measurement);
  const absl::Status uploaded = uploads.Stop();
  if (status.ok()) status = uploaded;
  if (!status.ok()) return status;
  // Over the warm-up, too, which is a fifth of it: the counter is of the whole.
  const double seconds = measurement.result.seconds + PassLimits::WarmUp(options).seconds;
  measurement.result.bytes_per_second =
      static_cast<double>(client->PayloadBytesSent() - sent_before) / seconds;
  measurement.result.alone = LatencyOf(*alone);
  return measurement;
}

}  // namespace

absl::StatusOr<Measurement> MeasureRpc(const Options& options, Device& device) {
  const bool flat = options.codec == Messages::kFlatBuffers;
  switch (options.mode) {
    case Mode::kLatency:
    case Mode::kThroughput:
      if (options.codec == Messages::kBoth) return MeasureBoth(options, device);
      return flat ? MeasureOperation<FlatEchoOperation>(options, device)
                  : MeasureOperation<EchoOperation>(options, device);
    case Mode::kUpload:
      return flat ? MeasureOperation<FlatUploadOperation>(options, device)
                  : MeasureOperation<UploadOperation>(options, device);
    case Mode::kDownload:
      return flat ? MeasureOperation<FlatDownloadOperation>(options, device)
                  : MeasureOperation<DownloadOperation>(options, device);
    case Mode::kBeside:
      return MeasureBeside(options, device);
  }
  return absl::InternalError("a mode that is none");
}

}  // namespace verbena::bench
