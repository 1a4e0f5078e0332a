// SPDX-License-Identifier: Apache-2.0
//
// PayloadPath: what a connection has when messages go by RDMA WRITE: sender and receiver. Made when
// the first such message comes or goes, so that a connection without any pays nothing.
//
// Threads: the poller's. Lifetime: the endpoint's; destroyed after the queue pair is.

#pragma once

#include "verbena/transport/connection_memory.h"
#include "verbena/transport/payload_port.h"
#include "verbena/transport/payload_receiver.h"
#include "verbena/transport/payload_sender.h"

namespace verbena {

class PayloadPath {
 public:
  PayloadPath(PayloadPort& port, const Capabilities& can, ConnectionMemory& memory)
      : sender(port, memory.domain(), memory.domain_id(), can, counters),
        receiver(port, *memory.domain(), memory.zones(), memory.staging(), memory.process_budget(),
                 can, counters) {}

  PayloadCounters counters;
  PayloadSender sender;
  PayloadReceiver receiver;
};

}  // namespace verbena
