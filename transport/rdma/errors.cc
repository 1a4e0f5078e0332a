// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/errors.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"

namespace verbena::rdma {
namespace {

std::string LockedMemoryLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return absl::StrCat(limit.rlim_cur, " bytes");
}

}  // namespace

int ErrorOf(int result) {
  if (result > 0) return result;
  if (result == -1) return errno != 0 ? errno : EINVAL;
  return -result;
}

std::string Describe(std::string_view call, int error) {
  char buffer[128];
  const char* text = strerror_r(error, buffer, sizeof(buffer));
  return absl::StrCat(absl::string_view(call.data(), call.size()), ": ", text, " (errno ", error,
                      ")");
}

absl::Status RegistrationError(int error, size_t bytes) {
  if (error == EFAULT || error == EINVAL || error == EACCES) {
    return absl::InvalidArgumentError(
        absl::StrCat("these ", bytes, " bytes cannot be registered with these rights; ",
                     Describe("ibv_reg_mr", error)));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      bytes, " bytes could not be pinned: the locked-memory limit is ", LockedMemoryLimit(),
      " (RLIMIT_MEMLOCK; raise it with `ulimit -l`, LimitMEMLOCK= of systemd or --ulimit memlock= "
      "of docker); ",
      Describe("ibv_reg_mr", error)));
}

absl::Status CreationError(std::string_view call, int error) {
  // libsiw fails without setting errno for a queue that begins at page 144 of all queues of a
  // device that is opened: its mark for "no place". With rings of a page each that is the 72nd
  // queue pair.
  const std::string text =
      error != 0 ? Describe(call, error)
                 : absl::StrCat(absl::string_view(call.data(), call.size()), " gives no reason");
  if (error == EINVAL) {
    return absl::InvalidArgumentError(absl::StrCat("the device refuses these sizes; ", text));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the device has no room for another; use fewer connections or shallower rings, "
                   "or look at the locked-memory limit, ",
                   LockedMemoryLimit(), "; ", text));
}

absl::Status PostError(std::string_view call, int error) {
  const std::string text = Describe(call, error);
  if (error == ENOMEM) return absl::ResourceExhaustedError(text);
  if (error == EOPNOTSUPP || error == ENOSYS) return absl::UnimplementedError(text);
  return absl::InvalidArgumentError(text);
}

}  // namespace verbena::rdma
