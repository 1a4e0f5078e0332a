// SPDX-License-Identifier: Apache-2.0
//
// Calls SayHello once: client [name] [address]

#include <chrono>
#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "examples/01_hello/greeter.verbena.h"
#include "verbena/rpc/verbena.h"

int main(int argc, char* argv[]) {
  std::unique_ptr<hello::Greeter::Stub> stub =
      hello::Greeter::NewStub(verbena::CreateChannel(argc > 2 ? argv[2] : "shm:hello"));

  hello::HelloRequest request;
  request.set_name(argc > 1 ? argv[1] : "world");
  hello::HelloReply reply;
  verbena::ClientContext context;
  context.set_timeout(std::chrono::seconds(1));

  if (absl::Status status = stub->SayHello(&context, request, &reply); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  std::cout << reply.message() << "\n";
}
