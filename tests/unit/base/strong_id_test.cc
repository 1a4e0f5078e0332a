// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/strong_id.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <type_traits>
#include <unordered_set>

#include "absl/container/flat_hash_set.h"

namespace verbena {
namespace {

using CallId = StrongId<struct CallIdTag, uint32_t>;
using PeerId = StrongId<struct PeerIdTag, uint32_t>;
using TinyId = StrongId<struct TinyIdTag, uint8_t>;

static_assert(!std::is_convertible_v<CallId, PeerId>);
static_assert(!std::is_constructible_v<CallId, PeerId>);
static_assert(!std::is_convertible_v<uint32_t, CallId>);
static_assert(!std::is_convertible_v<CallId, uint32_t>);
static_assert(sizeof(CallId) == sizeof(uint32_t));
static_assert(std::is_trivially_copyable_v<CallId>);
static_assert(CallId().value() == 0);

TEST(StrongId, ComparesByValue) {
  EXPECT_EQ(CallId(3), CallId(3));
  EXPECT_NE(CallId(3), CallId(4));
  EXPECT_LT(CallId(3), CallId(4));
  EXPECT_GE(CallId(4), CallId(4));
  EXPECT_EQ(CallId(7).value(), 7u);
}

TEST(StrongId, HashesInStandardAndAbseilContainers) {
  std::unordered_set<CallId> standard = {CallId(1), CallId(1), CallId(2)};
  EXPECT_EQ(standard.size(), 2u);
  absl::flat_hash_set<CallId> abseil = {CallId(1), CallId(1), CallId(2)};
  EXPECT_EQ(abseil.size(), 2u);
  EXPECT_TRUE(abseil.contains(CallId(2)));
}

TEST(StrongId, PrintsAsANumberEvenWhenItIsAByte) {
  std::ostringstream out;
  out << CallId(12) << ' ' << TinyId(65);
  EXPECT_EQ(out.str(), "12 65");
}

}  // namespace
}  // namespace verbena
