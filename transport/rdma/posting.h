// SPDX-License-Identifier: Apache-2.0
//
// What the send and the receive engine of a queue pair have in common.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "verbena/transport/rdma/outstanding_requests.h"

namespace verbena::rdma {

// Calls `post(rest, &status)`, which returns how many it accepted, until all are or one is refused.
template <class Request, class Post>
absl::Status PostAll(std::span<const Request> requests, size_t* accepted, Post post) {
  absl::Status status;
  while (status.ok() && !requests.empty()) {
    const size_t count = post(requests, &status);
    requests = requests.subspan(count);
    if (accepted != nullptr) *accepted += count;
  }
  return status;
}

// Of `count` requests posted with one call the provider refused the one at `bad` and those behind
// it, which leave the account. Null: none, though the call failed. Returns how many stay.
template <class Work>
size_t TakeBackRefused(OutstandingRequests& queue, const Work* works, const Work* bad,
                       size_t count) {
  const size_t posted = bad == nullptr ? count : static_cast<size_t>(bad - works);
  queue.Unpush(static_cast<uint32_t>(count - posted));
  return posted;
}

// Takes requests into the account that the hardware is not to see, up to the first that `check`
// refuses. Returns how many.
template <class Request, class Check>
size_t Keep(std::span<const Request> requests, OutstandingRequests& queue, Check check,
            absl::Status* status) {
  size_t count = 0;
  for (; count < requests.size(); ++count) {
    *status = check(requests[count]);
    if (!status->ok()) break;
    queue.Push(requests[count].wr_id, /*completes=*/true);
  }
  return count;
}

}  // namespace verbena::rdma
