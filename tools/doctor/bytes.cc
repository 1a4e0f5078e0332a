// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/bytes.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

std::string FormatBytes(uint64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  constexpr std::array kUnits = {" bytes", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  // One digit behind the point while it says something.
  std::string number = absl::StrFormat(value >= 10 ? "%.0f" : "%.1f", value);
  return absl::StrCat(absl::StripSuffix(number, ".0"), kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  return count == kUnlimited ? "unlimited" : absl::StrCat(count);
}

}  // namespace verbena::doctor
