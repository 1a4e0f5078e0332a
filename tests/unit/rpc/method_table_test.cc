// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/method_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/tests/support/status_matchers.h"

namespace verbena {
namespace {

absl::Status Nothing(Service*, ServerContext*, const void*, void*) { return absl::OkStatus(); }

// A service of the methods named.
class FakeService final : public Service {
 public:
  explicit FakeService(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const std::string& kept = names_.emplace_back(name);
      const MethodDescriptor& descriptor = descriptors_.emplace_back(kept, nullptr, nullptr);
      AddVerbenaMethod(&descriptor, &Nothing);
    }
  }

 private:
  std::deque<std::string> names_;
  std::deque<MethodDescriptor> descriptors_;
};

absl::StatusOr<MethodTable> Build(const std::vector<Service*>& services) {
  return MethodTable::Build(services);
}

TEST(MethodTable, FindsEachMethodWithItsServiceAndHandler) {
  FakeService one({"a.One/Get", "a.One/Put"});
  FakeService two({"a.Two/Get"});
  const absl::StatusOr<MethodTable> table = Build({&one, &two});
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->size(), 3u);
  const MethodEntry* put = table->Find(MethodId("a.One/Put"));
  ASSERT_NE(put, nullptr);
  EXPECT_EQ(put->descriptor->full_name, "a.One/Put");
  EXPECT_EQ(put->service, &one);
  EXPECT_EQ(put->handler, &Nothing);
  ASSERT_NE(table->Find(MethodId("a.Two/Get")), nullptr);
  EXPECT_EQ(table->Find(MethodId("a.Two/Get"))->service, &two);
}

TEST(MethodTable, FindsNothingForAnIdentityItDoesNotKnow) {
  FakeService one({"a.One/Get"});
  const absl::StatusOr<MethodTable> table = Build({&one});
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->Find(MethodId("a.One/Put")), nullptr);
  EXPECT_EQ(table->Find(0), nullptr);
  EXPECT_EQ(table->Find(UINT64_MAX), nullptr);
}

TEST(MethodTable, FindsAllOfAThousandMethodsAndNumbersThemWithoutGaps) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back(absl::StrCat("package.Service/Method", i));
  FakeService service(names);
  const absl::StatusOr<MethodTable> table = Build({&service});
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->size(), 1000u);
  std::set<uint32_t> indices;
  for (const std::string& name : names) {
    const MethodEntry* entry = table->Find(MethodId(name));
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->descriptor->full_name, name);
    indices.insert(entry->index);
  }
  EXPECT_EQ(indices.size(), 1000u);
  EXPECT_EQ(*indices.rbegin(), 999u);
  for (int i = 1000; i < 20'000; ++i) {
    EXPECT_EQ(table->Find(MethodId(absl::StrCat("package.Service/Method", i))), nullptr);
  }
}

TEST(MethodTable, RefusesAMethodTwiceAndNamesIt) {
  FakeService one({"a.One/Get"});
  FakeService again({"a.One/Put", "a.One/Get"});
  EXPECT_THAT(Build({&one, &again}),
              Is(absl::StatusCode::kAlreadyExists,
                 "a.One/Get and a.One/Get are the same method: register each service once"));
}

TEST(MethodTable, RefusesAServiceRegisteredTwice) {
  FakeService one({"a.One/Get"});
  EXPECT_THAT(Build({&one, &one}), Is(absl::StatusCode::kAlreadyExists, "a.One/Get"));
}

TEST(MethodTable, RefusesAServerWithoutAService) {
  EXPECT_THAT(Build({}), Is(absl::StatusCode::kInvalidArgument, "RegisterService"));
}

TEST(MethodTable, TakesAServiceWithoutMethods) {
  FakeService none({});
  const absl::StatusOr<MethodTable> table = Build({&none});
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->size(), 0u);
  EXPECT_EQ(table->Find(MethodId("a.One/Get")), nullptr);
}

}  // namespace
}  // namespace verbena
