// SPDX-License-Identifier: Apache-2.0
//
// Takes transfers until it is interrupted: receiver [address]

#include <iostream>
#include <memory>

#include "absl/status/statusor.h"
#include "examples/02_bulk_transfer/common.h"
#include "examples/02_bulk_transfer/transfer.verbena.h"
#include "verbena/rpc/verbena.h"

class Receiver final : public transfer::Transfer::Service {
 public:
  // For its statistics; null until it runs.
  const verbena::Server* server = nullptr;

 private:
  // `request->content()` is where the device put it: registered memory of this process. A server
  // that wants to keep it keeps the Buffer; here it goes back when the call is over.
  absl::Status Put(verbena::ServerContext* /*context*/, const transfer::PlacedPutRequest* request,
                   transfer::PutReply* response) override {
    response->set_bytes(request->content().size());
    response->set_sum(SumOfPages(request->content().span()));
    response->set_cpu_seconds(CpuSeconds());
    response->set_bytes_copied(server->statistics().payload_bytes_copied);
    return absl::OkStatus();
  }
};

int main(int argc, char* argv[]) {
  Receiver receiver;
  verbena::ServerBuilder builder;
  builder.AddListeningPort(argc > 1 ? argv[1] : "shm:transfer").RegisterService(&receiver);
  absl::StatusOr<std::unique_ptr<verbena::Server>> server = builder.BuildAndStart();
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }
  receiver.server = server->get();
  std::cout << "Listening. Stop with Ctrl-C." << std::endl;
  (*server)->Wait();
}
