// SPDX-License-Identifier: Apache-2.0
//
// A server and its client in one program, over the software device.

#include <unistd.h>

#include <array>
#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "greeter.verbena.h"
#include "meter.verbena.h"
#include "verbena/rpc/flat_message.h"
#include "verbena/rpc/verbena.h"

class GreeterImpl final : public hello::Greeter::Service {
  absl::Status SayHello(verbena::ServerContext* /*context*/, const hello::HelloRequest* request,
                        hello::HelloReply* response) override {
    response->set_message("Hello, " + request->name() + "!");
    return absl::OkStatus();
  }

  absl::Status Measure(verbena::ServerContext* /*context*/, const hello::PlacedPicture* request,
                       hello::Size* response) override {
    response->set_bytes(request->pixels().size());
    return absl::OkStatus();
  }
};

class MeterImpl final : public hello::Meter::Service {
  absl::Status Report(verbena::ServerContext* context,
                      const verbena::FlatMessage<hello::Readings>* request,
                      verbena::FlatMessage<hello::Average>* response) override {
    double sum = 0;
    for (const double celsius : *(*request)->celsius()) sum += celsius;
    verbena::FlatMessageBuilder builder(*context);
    builder.Finish(hello::CreateAverage(builder, sum / (*request)->celsius()->size()));
    *response = builder.ReleaseMessage<hello::Average>();
    return absl::OkStatus();
  }
};

int main() {
  const std::string address = "shm:greeter-" + std::to_string(getpid());
  GreeterImpl greeter;
  MeterImpl meter;
  verbena::ServerBuilder builder;
  builder.AddListeningPort(address);
  builder.RegisterService(&greeter);
  builder.RegisterService(&meter);
  absl::StatusOr<std::unique_ptr<verbena::Server>> server = builder.BuildAndStart();
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }

  std::shared_ptr<verbena::Channel> channel = verbena::CreateChannel(address);
  std::unique_ptr<hello::Greeter::Stub> stub = hello::Greeter::NewStub(channel);
  hello::HelloRequest request;
  request.set_name("Ada");
  hello::HelloReply reply;
  verbena::ClientContext context;
  if (absl::Status status = stub->SayHello(&context, request, &reply); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  std::cout << reply.message() << "\n";

  std::array<std::byte, 100000> pixels = {};
  hello::PlacedPicture picture;
  picture.set_pixels(verbena::Buffer::Wrap(pixels));
  hello::Size size;
  verbena::ClientContext measure_context;
  if (absl::Status status = stub->Measure(&measure_context, picture, &size); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  std::cout << size.bytes() << " bytes\n";

  verbena::FlatMessageBuilder readings(*channel);
  readings.Finish(hello::CreateReadings(readings, readings.CreateVector<double>({18, 20, 25})));
  verbena::FlatMessage<hello::Average> average;
  verbena::ClientContext report_context;
  if (absl::Status status = hello::Meter::NewStub(channel)->Report(
          &report_context, readings.ReleaseMessage<hello::Readings>(), &average);
      !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  std::cout << average->celsius() << " degrees\n";
}
