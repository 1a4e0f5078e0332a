// SPDX-License-Identifier: Apache-2.0
//
// The first values are test vectors of the FNV reference code (RFC draft "The FNV Non-Cryptographic
// Hash Algorithm", appendix C); the last two are the same algorithm run in another language.

#include "verbena/rpc/method.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(MethodId, IsTheReferenceFnv1a) {
  EXPECT_EQ(MethodId(""), 0xcbf29ce484222325u);
  EXPECT_EQ(MethodId("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(MethodId("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(MethodId("chongo was here!\n"), 0x46810940eff5f915u);
}

TEST(MethodId, IsWhatIsOnTheWireAndNeverChanges) {
  EXPECT_EQ(MethodId("hello.Greeter/SayHello"), 0x75498bb614dabd71u);
  EXPECT_EQ(MethodId("test.Text/Call"), 0x2b6e1d8587eaf687u);
}

TEST(MethodId, HashesBytesAboveAsciiAsUnsigned) {
  // (0xcbf29ce484222325 ^ 0xff) * 0x100000001b3 modulo 2^64.
  EXPECT_EQ(MethodId("\xff"), 0xaf64724c8602eb6eu);
}

TEST(MethodDescriptor, CarriesTheIdOfItsName) {
  constexpr MethodDescriptor descriptor("a.B/C", nullptr, nullptr);
  static_assert(descriptor.id == MethodId("a.B/C"));
  EXPECT_EQ(descriptor.full_name, "a.B/C");
}

}  // namespace
}  // namespace verbena
