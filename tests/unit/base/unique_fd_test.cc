// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/unique_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace verbena {
namespace {

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, OwnsNothingByDefault) {
  UniqueFd fd;
  EXPECT_FALSE(fd.valid());
  EXPECT_FALSE(fd);
  EXPECT_EQ(fd.get(), -1);
}

TEST(UniqueFd, ClosesOnDestruction) {
  int raw = OpenNull();
  ASSERT_GE(raw, 0);
  {
    UniqueFd fd(raw);
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(fd.get(), raw);
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFd, MoveHandsTheDescriptorOver) {
  int raw = OpenNull();
  UniqueFd from(raw);
  UniqueFd to(std::move(from));
  EXPECT_FALSE(from.valid());
  EXPECT_EQ(to.get(), raw);
  EXPECT_TRUE(IsOpen(raw));
}

TEST(UniqueFd, MoveAssignmentClosesWhatWasThere) {
  int old_raw = OpenNull();
  int new_raw = OpenNull();
  ASSERT_NE(old_raw, new_raw);
  UniqueFd to(old_raw);
  to = UniqueFd(new_raw);
  EXPECT_FALSE(IsOpen(old_raw));
  EXPECT_TRUE(IsOpen(new_raw));
  EXPECT_EQ(to.get(), new_raw);
}

TEST(UniqueFd, SelfMoveKeepsTheDescriptor) {
  UniqueFd fd(OpenNull());
  int raw = fd.get();
  UniqueFd& same = fd;
  fd = std::move(same);
  EXPECT_EQ(fd.get(), raw);
  EXPECT_TRUE(IsOpen(raw));
}

TEST(UniqueFd, ReleaseGivesItUpOpen) {
  UniqueFd fd(OpenNull());
  int raw = fd.Release();
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(IsOpen(raw));
  close(raw);
}

TEST(UniqueFd, ResetClosesAndKeepsErrno) {
  UniqueFd fd(OpenNull());
  int raw = fd.get();
  errno = EAGAIN;
  fd.Reset();
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(fd.valid());
  EXPECT_FALSE(IsOpen(raw));
  fd.Reset();  // Nothing to close.
}

}  // namespace
}  // namespace verbena
