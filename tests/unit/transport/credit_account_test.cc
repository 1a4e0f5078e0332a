// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/credit_account.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

// Spends while it may, and says how often that was.
uint32_t SpendAll(CreditAccount& account, CreditClass credit_class) {
  uint32_t spent = 0;
  for (; account.CanSpend(credit_class); ++spent) account.Spend();
  return spent;
}

TEST(CreditAccount, BeginsWithTheReceivesThatThePeerPosted) {
  const CreditAccount account(/*peer_depth=*/128, /*own_depth=*/64);
  EXPECT_EQ(account.available(), 128u);
  EXPECT_EQ(account.unreported(), 0u);
}

TEST(CreditAccount, NeverLetsDataTouchTheControlReserve) {
  CreditAccount account(16, 16);
  EXPECT_EQ(SpendAll(account, CreditClass::kData), 12u);
  EXPECT_EQ(account.available(), kControlReserve);
  EXPECT_EQ(kControlReserve, 4u);
}

TEST(CreditAccount, LeavesACancelThreeAGrantOneAndACloseNone) {
  CreditAccount account(16, 16);
  SpendAll(account, CreditClass::kData);
  EXPECT_EQ(SpendAll(account, CreditClass::kCancel), 1u);
  EXPECT_EQ(account.available(), 3u);
  EXPECT_FALSE(account.CanSpend(CreditClass::kData));
  EXPECT_EQ(SpendAll(account, CreditClass::kGrant), 2u);
  EXPECT_EQ(account.available(), 1u);
  EXPECT_FALSE(account.CanSpend(CreditClass::kCancel));
  EXPECT_EQ(SpendAll(account, CreditClass::kClose), 1u);
  EXPECT_EQ(account.available(), 0u);
  EXPECT_FALSE(account.CanSpend(CreditClass::kClose));
}

TEST(CreditAccount, SpendsAgainWhatThePeerReturned) {
  CreditAccount account(16, 16);
  SpendAll(account, CreditClass::kData);
  EXPECT_TRUE(account.Return(5));
  EXPECT_EQ(SpendAll(account, CreditClass::kData), 5u);
  EXPECT_TRUE(account.Return(12));
  EXPECT_EQ(account.available(), 16u);
}

TEST(CreditAccount, RefusesMoreCreditsThanWereSpentAndAddsNothing) {
  CreditAccount account(16, 16);
  EXPECT_FALSE(account.Return(1));
  EXPECT_FALSE(account.Return(0xffff));
  account.Spend();
  account.Spend();
  EXPECT_FALSE(account.Return(3));
  EXPECT_EQ(account.available(), 14u);
  EXPECT_TRUE(account.Return(2));
  EXPECT_TRUE(account.Return(0));
  EXPECT_EQ(account.available(), 16u);
}

TEST(CreditAccount, OwesAGrantWhenHalfItsRingIsUnreported) {
  CreditAccount account(/*peer_depth=*/16, /*own_depth=*/64);
  account.Reposted(31);
  EXPECT_FALSE(account.GrantDue());
  account.Reposted(1);
  EXPECT_TRUE(account.GrantDue());
  EXPECT_EQ(account.TakeUnreported(), 32u);
  EXPECT_FALSE(account.GrantDue());
  EXPECT_EQ(account.unreported(), 0u);
}

TEST(CreditAccount, ReportsInSeveralFramesWhatDoesNotFitInOne) {
  CreditAccount account(16, 0x20000);
  account.Reposted(0x10001);
  EXPECT_EQ(account.TakeUnreported(), 0xffffu);
  EXPECT_EQ(account.TakeUnreported(), 2u);
  EXPECT_EQ(account.TakeUnreported(), 0u);
}

}  // namespace
}  // namespace verbena
