// SPDX-License-Identifier: Apache-2.0
//
// Reports so many readings: client [readings] [address]

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "examples/01_hello/greeter.verbena.h"
#include "examples/03_flatbuffers/meter.verbena.h"
#include "verbena/rpc/verbena.h"

int main(int argc, char* argv[]) {
  const size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  std::shared_ptr<verbena::Channel> channel =
      verbena::CreateChannel(argc > 2 ? argv[2] : "shm:meter");
  // What is built for a connection that is there is in its memory, and sent from it.
  absl::Status status = channel->WaitForConnected(std::chrono::seconds(1));
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }

  // With Protobuf, by the same channel.
  hello::HelloRequest hello;
  hello.set_name("station 7");
  hello::HelloReply greeting;
  verbena::ClientContext hello_context;
  hello_context.set_timeout(std::chrono::seconds(1));
  status = hello::Greeter::NewStub(channel)->SayHello(&hello_context, hello, &greeting);
  if (status.ok()) std::cout << greeting.message() << "\n";

  // With FlatBuffers. About how long the message will be saves moving it while it grows.
  verbena::FlatMessageBuilder builder(*channel, count * sizeof(meter::Reading) + 256);
  meter::Reading* readings = nullptr;
  const auto vector = builder.CreateUninitializedVectorOfStructs(count, &readings);
  for (size_t i = 0; i < count; ++i) {
    readings[i] = meter::Reading(i, 20.0 + static_cast<double>(i % 10));
  }
  const auto station = builder.CreateString("station 7");
  builder.Finish(meter::CreateReadings(builder, station, vector));
  const auto request = builder.ReleaseMessage<meter::Readings>();

  verbena::FlatMessage<meter::Summary> summary;
  verbena::ClientContext context;
  context.set_timeout(std::chrono::seconds(1));
  status = meter::Meter::NewStub(channel)->Report(&context, request, &summary);
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  std::cout << summary->count() << " readings, " << summary->mean_celsius() << " degrees; "
            << channel->statistics().payload_bytes_copied << " bytes were copied\n";
}
