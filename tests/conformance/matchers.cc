// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/conformance/matchers.h"

namespace verbena {

void PrintTo(ConnectionEvent::Type type, std::ostream* out) {
  switch (type) {
    case ConnectionEvent::Type::kConnectRequest:
      *out << "kConnectRequest";
      return;
    case ConnectionEvent::Type::kEstablished:
      *out << "kEstablished";
      return;
    case ConnectionEvent::Type::kRejected:
      *out << "kRejected";
      return;
    case ConnectionEvent::Type::kUnreachable:
      *out << "kUnreachable";
      return;
    case ConnectionEvent::Type::kDisconnected:
      *out << "kDisconnected";
      return;
  }
  *out << "unknown event " << static_cast<int>(type);
}

}  // namespace verbena

namespace verbena::conformance {

std::byte PatternByte(uint32_t seed, size_t index) {
  // Knuth's multiplicative hash: neighbours, and equal indices of neighbouring seeds, differ.
  const uint64_t mixed = (index + 1) * 2654435761u + seed * 40503ull * 65537ull;
  return static_cast<std::byte>((mixed >> 13) ^ mixed ^ (mixed >> 29));
}

void FillPattern(std::span<std::byte> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = PatternByte(seed, i);
}

testing::AssertionResult HoldsPattern(std::span<const std::byte> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != PatternByte(seed, i)) {
      return testing::AssertionFailure()
             << "byte " << i << " of " << bytes.size() << " is " << std::to_integer<int>(bytes[i])
             << " and not " << std::to_integer<int>(PatternByte(seed, i)) << " (pattern " << seed
             << ")";
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult HoldsOnly(std::span<const std::byte> bytes, uint8_t value) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (std::to_integer<uint8_t>(bytes[i]) != value) {
      return testing::AssertionFailure()
             << "byte " << i << " of " << bytes.size() << " is " << std::to_integer<int>(bytes[i])
             << " and not " << static_cast<int>(value);
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace verbena::conformance
