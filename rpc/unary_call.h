// SPDX-License-Identifier: Apache-2.0
//
// One request, one response: the two functions that generated stubs call.

#pragma once

#include <functional>

#include "absl/status/status.h"
#include "verbena/rpc/channel.h"
#include "verbena/rpc/client_context.h"
#include "verbena/rpc/method.h"

namespace verbena {

// Runs when a call has ended. A lambda whose captures fit in two pointers costs no allocation.
using DoneCallback = std::function<void(absl::Status)>;

// Calls and waits. `request` and `response` are of the types of `method`'s codecs; `*response` is
// unspecified unless the status is OK. The calling thread itself drives the channel while it
// waits, so that no second thread stands between it and the device. From a handler or a callback
// of the same poller it would wait for itself: FAILED_PRECONDITION.
//
// Errors, beside what the handler returns:
//   DEADLINE_EXCEEDED    the context's deadline passed;
//   CANCELLED            ClientContext::TryCancel;
//   UNAVAILABLE          no connection, or it broke; says whether the call may have run;
//   UNIMPLEMENTED        the server has no such method;
//   RESOURCE_EXHAUSTED   no memory for a long request or response (the message names the budget);
//                        too many calls are outstanding;
//   INTERNAL             bytes that are no such message.
absl::Status CallUnary(Channel& channel, const MethodDescriptor& method, ClientContext* context,
                       const void* request, void* response);

// Starts a call and returns. `context`, `request` and `response` must live until `done` has run,
// exactly once, on the channel's poller thread; keep it short, or hand over. Errors go to `done`,
// as above. `done` runs after this has returned, with one exception: on a channel whose target or
// options are bad, which has no poller, it runs at once.
void StartUnary(Channel& channel, const MethodDescriptor& method, ClientContext* context,
                const void* request, void* response, DoneCallback done);

}  // namespace verbena
