// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/names.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace verbena::codegen {
namespace {

using testing::ElementsAre;

TEST(Names, KeywordsAndMacrosAreReserved) {
  for (const char* name : {"class", "xor_eq", "alignas", "char8_t", "co_await", "requires",
                           "static_cast", "reinterpret_cast", "NULL", "EOF", "assert", "errno"}) {
    EXPECT_TRUE(IsReservedInCpp(name)) << name;
  }
  // Contextual keywords and near misses are identifiers like any other.
  for (const char* name :
       {"final", "override", "import", "module", "Class", "clas", "classs", ""}) {
    EXPECT_FALSE(IsReservedInCpp(name)) << name;
  }
}

TEST(Names, OrdinaryNamesStayAsTheyAre) {
  EXPECT_THAT(CppNames(NameKind::kMethod, {"SayHello", "sayHello", "New", "CopyFrom"}, {}),
              ElementsAre("SayHello", "sayHello", "New", "CopyFrom"));
}

TEST(Names, ReservedNamesGetAnUnderscore) {
  EXPECT_THAT(CppNames(NameKind::kMethod, {"delete", "Stub", "async", "channel"}, {}),
              ElementsAre("delete_", "Stub_", "async_", "channel"));
  EXPECT_THAT(CppNames(NameKind::kService, {"class", "Service", "async", "std"}, {}),
              ElementsAre("class_", "Service_", "async", "std_"));
}

TEST(Names, MangledNameGivesWayToASiblingThatIsSpelledSo) {
  EXPECT_THAT(CppNames(NameKind::kMethod, {"delete", "delete_", "delete__"}, {}),
              ElementsAre("delete___", "delete_", "delete__"));
}

TEST(Names, MangledNameIsNeverAHelper) {
  // "channel_" is a member of the generated stub, so it is mangled itself.
  EXPECT_THAT(CppNames(NameKind::kMethod, {"channel_"}, {}), ElementsAre("channel__"));
}

TEST(Names, ServiceAvoidsTakenNames) {
  EXPECT_THAT(CppNames(NameKind::kService, {"Outer_Inner", "Other"}, {"Outer_Inner"}),
              ElementsAre("Outer_Inner_", "Other"));
  EXPECT_THAT(CppNames(NameKind::kService, {"Channel"}, RuntimeNames()), ElementsAre("Channel_"));
}

TEST(Names, MangledServiceAvoidsTakenNamesToo) {
  EXPECT_THAT(CppNames(NameKind::kService, {"class"}, {"class_"}), ElementsAre("class__"));
}

}  // namespace
}  // namespace verbena::codegen
