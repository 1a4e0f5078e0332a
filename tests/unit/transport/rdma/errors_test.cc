// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/errors.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "verbena/tests/support/status_matchers.h"

namespace verbena::rdma {
namespace {

using absl::StatusCode;

// Of this process, as long as it lives.
class LockedMemoryLimit {
 public:
  explicit LockedMemoryLimit(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_MEMLOCK, &before_), 0);
    rlimit now = before_;
    now.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &now), 0);
  }
  ~LockedMemoryLimit() { setrlimit(RLIMIT_MEMLOCK, &before_); }

 private:
  rlimit before_{};
};

TEST(ErrorOf, TakesEverySignThatVerbsUse) {
  errno = EBUSY;
  EXPECT_EQ(ErrorOf(0), 0);
  EXPECT_EQ(ErrorOf(ENOMEM), ENOMEM);
  EXPECT_EQ(ErrorOf(-ENOMEM), ENOMEM);
  EXPECT_EQ(ErrorOf(-1), EBUSY);
  errno = 0;
  EXPECT_EQ(ErrorOf(-1), EINVAL);
}

TEST(Describe, NamesTheCallTheReasonAndTheNumber) {
  EXPECT_EQ(Describe("ibv_create_qp", ENOMEM), "ibv_create_qp: Cannot allocate memory (errno 12)");
}

TEST(RegistrationError, NamesTheLimitAndTheNeed) {
  const LockedMemoryLimit limit(4096);
  for (int error : {ENOMEM, EAGAIN, EPERM}) {
    const absl::Status status = RegistrationError(error, 123456);
    EXPECT_THAT(status, Is(StatusCode::kResourceExhausted, "123456 bytes"));
    EXPECT_THAT(status, Is(StatusCode::kResourceExhausted, "limit is 4096 bytes (RLIMIT_MEMLOCK"));
    EXPECT_THAT(status, Is(StatusCode::kResourceExhausted, "ulimit -l"));
  }
}

TEST(RegistrationError, OfMemoryThatIsNotThereIsTheCallersMistake) {
  for (int error : {EFAULT, EINVAL, EACCES}) {
    EXPECT_THAT(RegistrationError(error, 42), Is(StatusCode::kInvalidArgument, "42 bytes"));
  }
}

TEST(CreationError, TellsSizesFromShortage) {
  EXPECT_THAT(CreationError("ibv_create_qp", EINVAL),
              Is(StatusCode::kInvalidArgument, "ibv_create_qp: Invalid argument (errno 22)"));
  const LockedMemoryLimit limit(4096);
  EXPECT_THAT(CreationError("ibv_create_cq", ENOMEM),
              Is(StatusCode::kResourceExhausted, "locked-memory limit, 4096 bytes"));
  EXPECT_THAT(CreationError("ibv_create_cq", ENOMEM),
              Is(StatusCode::kResourceExhausted, "ibv_create_cq: Cannot allocate memory"));
}

TEST(CreationError, WithoutAnErrnoSaysSo) {
  EXPECT_THAT(CreationError("ibv_create_qp", 0),
              Is(StatusCode::kResourceExhausted, "ibv_create_qp gives no reason"));
}

TEST(PostError, TellsAFullQueueFromAnUnknownOpcodeFromAMistake) {
  EXPECT_THAT(PostError("ibv_post_send", ENOMEM), Is(StatusCode::kResourceExhausted, "errno 12"));
  EXPECT_THAT(PostError("ibv_post_send", EOPNOTSUPP), Is(StatusCode::kUnimplemented, "errno 95"));
  EXPECT_THAT(PostError("ibv_post_send", ENOSYS), Is(StatusCode::kUnimplemented, "errno 38"));
  EXPECT_THAT(PostError("ibv_post_send", EINVAL), Is(StatusCode::kInvalidArgument, "errno 22"));
}

}  // namespace
}  // namespace verbena::rdma
