// SPDX-License-Identifier: Apache-2.0
//
// What an endpoint needs of the poller that it belongs to, beside being called.

#pragma once

#include <cstdint>
#include <functional>

#include "verbena/transport/work_request_id.h"

namespace verbena {

class Endpoint;

class EndpointHost {
 public:
  // Runs on the poller, with the endpoint if it is alive still.
  using Continuation = std::function<void(Endpoint&)>;
  // Runs `work` on a thread where it may take its time, then what it returns. Poller's thread.
  virtual void RunInBackground(EndpointId id, std::function<Continuation()> work) = 0;
  // Calls endpoint->Tend() about this long from now, or earlier. Poller's thread.
  virtual void TendWithin(Endpoint* endpoint, int64_t interval_ns) = 0;

 protected:
  ~EndpointHost() = default;
};

// The host whose poller this thread holds, and took last (PollerDriver): for memory that may come
// back on any thread, and goes a shorter way on its poller's.
inline constinit thread_local const EndpointHost* current_endpoint_host = nullptr;

}  // namespace verbena
