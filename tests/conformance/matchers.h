// SPDX-License-Identifier: Apache-2.0
//
// Matchers, printers and byte patterns of the conformance suite.

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/tests/conformance/device_under_test.h"
#include "verbena/transport/connection_manager.h"
#include "verbena/transport/queue_pair.h"
#include "verbena/transport/work_request.h"

namespace verbena {

inline void PrintTo(CompletionStatus status, std::ostream* out) {
  *out << static_cast<uint32_t>(status) << " \"" << CompletionStatusName(status) << '"';
}
inline void PrintTo(CompletionOpcode opcode, std::ostream* out) {
  *out << "completion opcode " << static_cast<uint32_t>(opcode);
}
inline void PrintTo(QueuePairState state, std::ostream* out) {
  *out << "queue pair state " << static_cast<uint32_t>(state);
}
inline void PrintTo(RemoteKey key, std::ostream* out) { *out << "remote key " << key.value; }
void PrintTo(ConnectionEvent::Type type, std::ostream* out);

}  // namespace verbena

namespace verbena::conformance {

// The name; GoogleTest would print the bytes.
inline void PrintTo(const DeviceUnderTest& subject, std::ostream* out) { *out << subject.name; }

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return arg.ok();
}
MATCHER_P(HasCode, code, "has the code " + absl::StatusCodeToString(code)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}
// The message also tells what to change: it names an option or a capability.
MATCHER_P2(HasCodeAndNames, code, word,
           "has the code " + absl::StatusCodeToString(code) + " and names " + word) {
  const std::string text = StatusOf(arg).ToString();
  *result_listener << text;
  return StatusOf(arg).code() == code && text.find(word) != std::string::npos;
}

// The value, or the end of this test: GoogleTest reports the exception as its failure.
template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}
inline void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// A sequence of bytes that differs for every `seed` and has no short period.
std::byte PatternByte(uint32_t seed, size_t index);
void FillPattern(std::span<std::byte> bytes, uint32_t seed);
testing::AssertionResult HoldsPattern(std::span<const std::byte> bytes, uint32_t seed);
testing::AssertionResult HoldsOnly(std::span<const std::byte> bytes, uint8_t value);

}  // namespace verbena::conformance
