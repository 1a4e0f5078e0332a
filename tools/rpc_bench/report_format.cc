// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/report_format.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace verbena::bench {
namespace {

// Three significant digits, which is what a measurement is good for.
std::string ThreeDigits(double value) {
  if (value > 0 && value < 0.01) return absl::StrFormat("%.2g", value);
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  return absl::StrFormat("%.*f", decimals, value);
}

}  // namespace

std::string FormatMicroseconds(double us) { return absl::StrCat(ThreeDigits(us), " us"); }

std::string FormatCount(double count) {
  const std::string digits = absl::StrCat(std::llround(std::max(count, 0.0)));
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string FormatBytesPerSecond(double rate) {
  if (rate >= 1e9) return absl::StrCat(ThreeDigits(rate / 1e9), " GB/s");
  if (rate >= 1e6) return absl::StrCat(ThreeDigits(rate / 1e6), " MB/s");
  return absl::StrCat(ThreeDigits(rate / 1e3), " kB/s");
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, " ", kUnits[unit]);
}

std::string FormatRatio(double ratio) { return absl::StrCat(ThreeDigits(ratio), " x"); }

std::string AlignColumns(const std::vector<std::vector<std::string>>& lines, size_t left_columns) {
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    if (widths.size() < line.size()) widths.resize(line.size());
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string table;
  for (const auto& line : lines) {
    std::string text = " ";
    for (size_t i = 0; i < line.size(); ++i) {
      std::string padding(widths[i] - line[i].size(), ' ');
      absl::StrAppend(&text, i < left_columns ? " " : "   ");
      absl::StrAppend(&text, i < left_columns ? line[i] + padding : padding + line[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    absl::StrAppend(&table, text, "\n");
  }
  return table;
}

}  // namespace verbena::bench
