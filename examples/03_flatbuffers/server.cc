// SPDX-License-Identifier: Apache-2.0
//
// Serves Meter, whose messages are FlatBuffers, beside Greeter, whose messages are Protobuf's,
// until it is interrupted.

#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/01_hello/greeter.verbena.h"
#include "examples/03_flatbuffers/meter.verbena.h"
#include "verbena/rpc/verbena.h"

class MeterImpl final : public meter::Meter::Service {
  // `request` is verified and read where the device put it; `response` is built where the device
  // takes it.
  absl::Status Report(verbena::ServerContext* context,
                      const verbena::FlatMessage<meter::Readings>* request,
                      verbena::FlatMessage<meter::Summary>* response) override {
    const auto& readings = *(*request)->readings();
    if (readings.size() == 0) return absl::InvalidArgumentError("no readings");
    double sum = 0;
    for (const meter::Reading* reading : readings) sum += reading->celsius();

    verbena::FlatMessageBuilder builder(*context);
    builder.Finish(meter::CreateSummary(builder, readings.size(), sum / readings.size()));
    *response = builder.ReleaseMessage<meter::Summary>();
    return absl::OkStatus();
  }
};

class GreeterImpl final : public hello::Greeter::Service {
  absl::Status SayHello(verbena::ServerContext* /*context*/, const hello::HelloRequest* request,
                        hello::HelloReply* response) override {
    response->set_message("Hello, " + request->name() + "!");
    return absl::OkStatus();
  }
};

int main(int argc, char* argv[]) {
  MeterImpl meter;
  GreeterImpl greeter;
  verbena::ServerBuilder builder;
  builder.AddListeningPort(argc > 1 ? argv[1] : "shm:meter");
  builder.RegisterService(&meter);
  builder.RegisterService(&greeter);
  absl::StatusOr<std::unique_ptr<verbena::Server>> server = builder.BuildAndStart();
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }
  std::cout << "Listening. Stop with Ctrl-C." << std::endl;
  (*server)->Wait();
}
