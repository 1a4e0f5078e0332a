// SPDX-License-Identifier: Apache-2.0
//
// What errno values of verbs mean for the user, and what to do next. Threads: any.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace verbena::rdma {

// The errno of a verb that returns one: most give it positive, libsiw negative, some -1 and errno.
int ErrorOf(int result);

// "ibv_create_qp: Cannot allocate memory (errno 12)".
std::string Describe(std::string_view call, int error);

// A registration of `bytes` failed. RESOURCE_EXHAUSTED with the locked-memory limit and the need,
// or INVALID_ARGUMENT for memory that is not mapped.
absl::Status RegistrationError(int error, size_t bytes);

// A queue could not be made: RESOURCE_EXHAUSTED or INVALID_ARGUMENT.
absl::Status CreationError(std::string_view call, int error);

// A post was refused: RESOURCE_EXHAUSTED, UNIMPLEMENTED or INVALID_ARGUMENT.
absl::Status PostError(std::string_view call, int error);

}  // namespace verbena::rdma
