// SPDX-License-Identifier: Apache-2.0
//
// Links and runs one small thing from each dependency, so that a link line missing from
// third_party/ shows here and not in an unrelated library.

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

DEFINE_int32(third_party_test_number, 7, "Only read here");

namespace verbena {
namespace {

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(n, " is odd"));
  return n / 2;
}

TEST(ThirdParty, AbseilStatusAndStrings) {
  EXPECT_EQ(Half(8).value(), 4);
  EXPECT_EQ(Half(7).status().ToString(), "INVALID_ARGUMENT: 7 is odd");
  EXPECT_EQ(absl::StrFormat("%05d %s", 42, "x"), "00042 x");
  EXPECT_EQ(std::string(absl::Cord("rope")), "rope");
  std::vector<std::string> parts = absl::StrSplit("a,b", ',');
  EXPECT_THAT(parts, testing::ElementsAre("a", "b"));
}

TEST(ThirdParty, AbseilContainersTimeAndLocks) {
  absl::flat_hash_map<std::string, int> map = {{"one", 1}};
  EXPECT_EQ(map.at("one"), 1);
  absl::flat_hash_set<int> set = {3, 3};
  EXPECT_EQ(set.size(), 1u);
  EXPECT_EQ(absl::HashOf(1, 2), absl::HashOf(1, 2));
  EXPECT_EQ(absl::FormatDuration(absl::Milliseconds(1500)), "1.5s");
  EXPECT_GT(absl::Now(), absl::UnixEpoch());
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  absl::Notification done;
  done.Notify();
  EXPECT_TRUE(done.HasBeenNotified());
}

TEST(ThirdParty, ProtobufGlogGflagsJson) {
  google::protobuf::Int32Value value;
  value.set_value(150);
  // https://protobuf.dev/programming-guides/encoding: field 1, varint 150.
  EXPECT_EQ(value.SerializeAsString(), std::string("\x08\x96\x01"));
  CHECK_EQ(value.value(), 150) << "CHECK compiles and passes";
  EXPECT_EQ(FLAGS_third_party_test_number, 7);
  EXPECT_EQ(nlohmann::json::parse(R"({"a":[1,2]})")["a"][1], 2);
}

}  // namespace
}  // namespace verbena
