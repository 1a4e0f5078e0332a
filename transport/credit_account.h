// SPDX-License-Identifier: Apache-2.0
//
// The credit account of one connection: how many receives the peer has posted for us, and how
// many of ours we have not told it of yet. It makes "receiver not ready" impossible.
//
// Every SEND and every WRITE_WITH_IMM consumes one receive of the peer, so each spends one credit,
// whatever it carries. Credits come back in the header of any frame, or in a grant of their own
// when half of the ring is unreported.
//
// Why this can't deadlock: data may not touch the last kControlReserve credits, so a grant can
// always be sent; a grant answers at least half a ring of the peer's messages, so each side has at
// most two grants of the other's unreported; and receives are posted again whatever the
// application does, so credits return without its help.
//
// Threads: the poller's. Pure arithmetic.

#pragma once

#include <algorithm>
#include <cstdint>

#include "glog/logging.h"

namespace verbena {

// What a frame may spend: the more the connection depends on it, the deeper.
enum class CreditClass : uint32_t {
  kData = 4,    // Leaves four: two grants, a cancel, a close.
  kCancel = 3,  // Leaves three; a cancel that finds none waits.
  kGrant = 1,   // Leaves one for the close.
  kClose = 0,
};
inline constexpr uint32_t kControlReserve = static_cast<uint32_t>(CreditClass::kData);

class CreditAccount {
 public:
  // `peer_depth`: receives that the peer posted before it said hello. `own_depth`: ours.
  CreditAccount(uint32_t peer_depth, uint32_t own_depth)
      : peer_depth_(peer_depth), grant_threshold_(own_depth / 2), available_(peer_depth) {}

  bool CanSpend(CreditClass credit_class) const {
    return available_ > static_cast<uint32_t>(credit_class);
  }
  void Spend() {
    DCHECK_GT(available_, 0u);
    --available_;
  }

  // The peer reported `count` receives. False when that is more than we spent: a protocol error,
  // and nothing is added.
  [[nodiscard]] bool Return(uint32_t count) {
    if (count > peer_depth_ - available_) return false;
    available_ += count;
    return true;
  }

  // We posted `count` of our receives again.
  void Reposted(uint32_t count) { unreported_ += count; }
  // What the next frame reports.
  uint16_t TakeUnreported() {
    const uint32_t count = std::min<uint32_t>(unreported_, 0xffff);
    unreported_ -= count;
    return static_cast<uint16_t>(count);
  }
  bool GrantDue() const { return unreported_ >= grant_threshold_; }

  uint32_t available() const { return available_; }
  uint32_t unreported() const { return unreported_; }

 private:
  uint32_t peer_depth_;
  uint32_t grant_threshold_;
  uint32_t available_;
  uint32_t unreported_ = 0;
};

}  // namespace verbena
