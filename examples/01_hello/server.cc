// SPDX-License-Identifier: Apache-2.0
//
// Answers SayHello until it is interrupted.

#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/01_hello/greeter.verbena.h"
#include "verbena/rpc/verbena.h"

class GreeterImpl final : public hello::Greeter::Service {
  absl::Status SayHello(verbena::ServerContext* /*context*/, const hello::HelloRequest* request,
                        hello::HelloReply* response) override {
    if (request->name().empty()) return absl::InvalidArgumentError("name must not be empty");
    response->set_message("Hello, " + request->name() + "!");
    return absl::OkStatus();
  }
};

int main(int argc, char* argv[]) {
  GreeterImpl greeter;
  verbena::ServerBuilder builder;
  builder.AddListeningPort(argc > 1 ? argv[1] : "shm:hello");
  builder.RegisterService(&greeter);
  absl::StatusOr<std::unique_ptr<verbena::Server>> server = builder.BuildAndStart();
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }
  std::cout << "Listening. Stop with Ctrl-C." << std::endl;
  (*server)->Wait();
}
