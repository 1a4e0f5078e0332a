// SPDX-License-Identifier: Apache-2.0
//
// Must(status_or) for what a test can't do without: takes the value, or ends the process saying
// why.

#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "glog/logging.h"

namespace verbena {

template <class T>
T Must(absl::StatusOr<T> value) {
  CHECK(value.ok()) << value.status();
  return *std::move(value);
}
inline void Must(const absl::Status& status) { CHECK(status.ok()) << status; }

}  // namespace verbena
