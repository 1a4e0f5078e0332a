// SPDX-License-Identifier: Apache-2.0
//
// Sends memory to a receiver, in one call each time: sender [address] [MiB] [rounds]

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "examples/02_bulk_transfer/common.h"
#include "examples/02_bulk_transfer/transfer.verbena.h"
#include "verbena/rpc/verbena.h"

// Shows how much is sent while a call runs.
class Progress {
 public:
  Progress(const verbena::Channel& channel, double bytes)
      : thread_([this, &channel, bytes, before = channel.statistics().payload_bytes_sent] {
          while (!done_) {
            const auto sent = channel.statistics().payload_bytes_sent - before;
            PrintProgress(std::min(1.0, static_cast<double>(sent) / bytes));
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}
  ~Progress() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

int main(int argc, char* argv[]) {
  const size_t bytes = size_t{argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1024} << 20;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  auto channel = verbena::CreateChannel(argc > 1 ? argv[1] : "shm:transfer");
  auto stub = transfer::Transfer::NewStub(channel);

  verbena::BufferPool pool;
  absl::StatusOr<verbena::Buffer> content = pool.Allocate(bytes);
  if (!content.ok()) {
    std::cerr << content.status() << "\n";
    return 1;
  }
  FillPages(content->span());
  transfer::PlacedPutRequest request;
  request.mutable_message()->set_name("memory");
  request.set_content(*content);

  double receiver_cpu = 0;
  for (int round = 1; round <= rounds; ++round) {
    verbena::ClientContext context;
    context.set_timeout(std::chrono::seconds(60));
    transfer::PutReply reply;
    const double start = Now();
    const double cpu = CpuSeconds();
    absl::Status status;
    {
      Progress progress(*channel, static_cast<double>(bytes));
      status = stub->Put(&context, request, &reply);
    }
    if (status.ok() && (reply.bytes() != bytes || reply.sum() != SumOfPages(content->span()))) {
      status = absl::DataLossError("the receiver has something else");
    }
    if (!status.ok()) {
      std::cerr << "\n" << status << "\n";
      return 1;
    }
    const double both = CpuSeconds() - cpu + reply.cpu_seconds() - receiver_cpu;
    receiver_cpu = reply.cpu_seconds();
    PrintRound(round, static_cast<double>(bytes), Now() - start, both);
    const auto copied = channel->statistics().payload_bytes_copied + reply.bytes_copied();
    if (round == rounds) std::printf("copied by Verbena: %lu bytes\n", copied);
  }
}
