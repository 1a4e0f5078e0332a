// SPDX-License-Identifier: Apache-2.0
//
// EXPECT_THAT(status, IsOk()) and EXPECT_THAT(status, Is(code, "part of the message")).

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"

namespace verbena {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P2(Is, code, part,
           "has the code " + absl::StatusCodeToString(code) + " and says \"" + std::string(part) +
               "\"") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code && absl::StrContains(StatusOf(arg).message(), part);
}

}  // namespace verbena
