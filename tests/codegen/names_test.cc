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

TEST(Names, MacrosOfTheHeadersBelowGetAnUnderscore) {
  for (const NameKind kind : {NameKind::kMethod, NameKind::kService, NameKind::kOther}) {
    EXPECT_THAT(
        CppNames(kind, {"LOG", "EINVAL", "NAN", "SIGINT", "INT_MAX", "M_PI", "makedev"}, {}),
        ElementsAre("LOG_", "EINVAL_", "NAN_", "SIGINT_", "INT_MAX_", "M_PI_", "makedev_"));
  }
  EXPECT_THAT(CppFieldNames({"sa_handler", "strdupa"}), ElementsAre("sa_handler_", "strdupa_"));
}

TEST(Names, FamiliesOfMacrosGetUnderscoresAsAWhole) {
  EXPECT_THAT(
      CppNames(NameKind::kMethod, {"ABSL_NEW", "GTEST_X_", "SYS_read", "SYS_RESET", "ABSL"}, {}),
      ElementsAre("ABSL_NEW__", "GTEST_X__", "SYS_read__", "SYS_RESET", "ABSL"));
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

TEST(Names, NextComponentOfANamespace) {
  EXPECT_EQ(NextComponent("a::b::c::d", "a::b"), "c");
  EXPECT_EQ(NextComponent("a::b::c", "a::b"), "c");
  EXPECT_EQ(NextComponent("a::b", ""), "a");
  EXPECT_EQ(NextComponent("a::b", "a::b"), "");
  EXPECT_EQ(NextComponent("a::bc::d", "a::b"), "");
}

TEST(Names, PlacedMessageAvoidsTakenNamesOnly) {
  EXPECT_THAT(CppNames(NameKind::kOther, {"PlacedA", "PlacedB"}, {"PlacedA", "PlacedA_"}),
              ElementsAre("PlacedA__", "PlacedB"));
}

TEST(Names, OrdinaryFieldsStayAsTheyAre) {
  EXPECT_THAT(CppFieldNames({"payload", "payload_", "class_", "clear", "setter", "verbena"}),
              ElementsAre("payload", "payload_", "class_", "clear", "setter", "verbena"));
}

TEST(Names, FieldGivesWayToTheClassAroundTheMessage) {
  EXPECT_THAT(CppFieldNames({"message", "mutable_message", "Clear", "VerbenaPlace"}),
              ElementsAre("message_", "mutable_message_", "Clear_", "VerbenaPlace_"));
}

TEST(Names, FieldGivesWayToFunctionsOfOthersWhereverTheyStand) {
  EXPECT_THAT(CppFieldNames({"set_a", "a", "add_a", "clear_a", "verbena_a_"}),
              ElementsAre("set_a_", "a", "add_a_", "clear_a_", "verbena_a__"));
}

TEST(Names, MangledFieldGivesWayToOthersAndTheirFunctions) {
  EXPECT_THAT(CppFieldNames({"message", "message_"}), ElementsAre("message__", "message_"));
  // Called message_, it would have the function set_message_.
  EXPECT_THAT(CppFieldNames({"message", "set_message_"}), ElementsAre("message__", "set_message_"));
  // clear_a gives way to a, and its own clear_clear_a_ must not be the second one's name.
  EXPECT_THAT(CppFieldNames({"a", "clear_a", "clear_clear_a"}),
              ElementsAre("a", "clear_a_", "clear_clear_a__"));
  // The class's verbena_message_ is no field's member.
  EXPECT_THAT(CppFieldNames({"verbena_message_", "message"}),
              ElementsAre("verbena_message__", "message__"));
}

}  // namespace
}  // namespace verbena::codegen
