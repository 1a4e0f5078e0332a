// SPDX-License-Identifier: Apache-2.0
//
// What the statistics of channels and servers say of messages that go by RDMA WRITE.
//
// Threads: written by one poller, read by any.

#pragma once

#include <cstdint>

#include "verbena/base/single_writer_counter.h"
#include "verbena/transport/payload_port.h"

namespace verbena {

class PayloadStatistics {
 public:
  // Adds what has happened since `*told`, and remembers it there.
  void Add(const PayloadCounters& now, PayloadCounters* told) {
    bytes_sent_.Add(now.bytes_sent - told->bytes_sent);
    bytes_received_.Add(now.bytes_received - told->bytes_received);
    bytes_copied_.Add(now.bytes_copied - told->bytes_copied);
    zones_asked_.Add(now.zones_asked - told->zones_asked);
    memory_bytes_.Add(now.memory_bytes - told->memory_bytes);  // May go down: modulo 2^64.
    *told = now;
  }
  // The connection is over.
  void End(PayloadCounters last, PayloadCounters* told) {
    last.memory_bytes = 0;
    Add(last, told);
    *told = {};
  }
  void AddCopied(uint64_t bytes) { bytes_copied_.Add(bytes); }

  // Adds up, for several pollers.
  template <class Statistics>
  void AddTo(Statistics* statistics) const {
    statistics->payload_bytes_sent += bytes_sent_.value();
    statistics->payload_bytes_received += bytes_received_.value();
    statistics->payload_bytes_copied += bytes_copied_.value();
    statistics->payload_zones_asked += zones_asked_.value();
    statistics->payload_memory_bytes += memory_bytes_.value();
  }

 private:
  SingleWriterCounter bytes_sent_;
  SingleWriterCounter bytes_received_;
  SingleWriterCounter bytes_copied_;
  SingleWriterCounter zones_asked_;
  SingleWriterCounter memory_bytes_;
};

}  // namespace verbena
