// SPDX-License-Identifier: Apache-2.0
//
// The account of one send or receive queue. It decides when the queue is full, whatever depth the
// provider rounded up to, and gives the user's wr_id back.
//
// Threads: the poller's.

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace verbena::rdma {

// What is outstanding of one queue, whose requests complete in order.
class OutstandingRequests {
 public:
  explicit OutstandingRequests(uint32_t depth)
      : depth_(depth), mask_(std::bit_ceil(std::max(depth, 1u)) - 1), requests_(mask_ + 1) {}
  bool full() const { return posted_ - retired_ >= depth_; }
  uint32_t next() const { return posted_; }
  // `completes`: whether it makes a completion on success, too.
  void Push(uint64_t user_id, bool completes) {
    requests_[posted_++ & mask_] = {user_id, completes};
  }
  void Unpush(uint32_t count) { posted_ -= count; }
  // The request `sequence` is complete, and so are all before it. Returns the user's wr_id.
  uint64_t Retire(uint32_t sequence) {
    retired_ = sequence + 1;
    return requests_[sequence & mask_].user_id;
  }
  bool IsOutstanding(uint32_t sequence) const { return sequence - retired_ < posted_ - retired_; }
  uint32_t retired() const { return retired_; }
  // Calls `f(sequence)`, in order and once for each, for what is outstanding and must complete.
  template <class F>
  void Sweep(F&& f) {
    // Behind what was retired since the last sweep; or there was none, and the numbers went round.
    const bool is_within = has_swept_ && swept_ - retired_ <= posted_ - retired_;
    if (!is_within) swept_ = retired_;
    has_swept_ = true;
    for (; swept_ != posted_; ++swept_) {
      if (requests_[swept_ & mask_].completes) f(swept_);
    }
  }

 private:
  struct Request {
    uint64_t user_id;
    bool completes;
  };
  const uint32_t depth_;
  const uint32_t mask_;
  std::vector<Request> requests_;
  uint32_t posted_ = 0;
  uint32_t retired_ = 0;
  uint32_t swept_ = 0;  // Up to here, once has_swept_.
  bool has_swept_ = false;
};

}  // namespace verbena::rdma
