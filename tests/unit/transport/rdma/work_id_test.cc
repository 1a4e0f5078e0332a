// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/work_id.h"

#include <gtest/gtest.h>

namespace verbena::rdma {
namespace {

void ExpectEncoded(const WorkId& id, uint64_t value) {
  EXPECT_EQ(id.Encode(), value);
  const WorkId decoded = WorkId::Decode(value);
  EXPECT_EQ(decoded.kind, id.kind);
  EXPECT_EQ(decoded.owner, id.owner);
  EXPECT_EQ(decoded.generation, id.generation);
  EXPECT_EQ(decoded.sequence, id.sequence);
}

TEST(WorkId, HasEachFieldAtItsPlace) {
  using Kind = WorkId::Kind;
  ExpectEncoded({}, 0);
  ExpectEncoded({.kind = Kind::kRecv}, 0x4000'0000'0000'0000);
  ExpectEncoded({.kind = Kind::kSharedRecv}, 0x8000'0000'0000'0000);
  ExpectEncoded({.owner = 1}, 0x0000'0400'0000'0000);
  ExpectEncoded({.generation = 1}, 0x0000'0001'0000'0000);
  ExpectEncoded({.sequence = 1}, 1);
  ExpectEncoded(
      {.kind = Kind::kRecv, .owner = 0x12345, .generation = 0x2a5, .sequence = 0x6789abcd},
      0x448d'16a5'6789'abcd);
}

TEST(WorkId, KeepsFieldsApartAtTheirLargest) {
  ExpectEncoded({.owner = WorkId::kOwnersMax - 1}, 0x3fff'fc00'0000'0000);
  ExpectEncoded({.generation = WorkId::kGenerations - 1}, 0x0000'03ff'0000'0000);
  ExpectEncoded({.sequence = 0xffff'ffff}, 0x0000'0000'ffff'ffff);
}

}  // namespace
}  // namespace verbena::rdma
