// SPDX-License-Identifier: Apache-2.0
//
// Bounded waiting. The bound only keeps a test from hanging; nothing is measured by it.

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace verbena {

inline constexpr std::chrono::seconds kHangBound{20};

// Looks every millisecond until `done()` is true; false when the bound came first.
template <class Done>
bool WaitUntil(Done&& done, std::chrono::milliseconds bound = kHangBound) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace verbena
