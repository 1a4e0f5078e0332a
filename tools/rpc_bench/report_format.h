// SPDX-License-Identifier: Apache-2.0
//
// Numbers and columns as people read them. Pure; any thread.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::bench {

std::string FormatMicroseconds(double us);      // "0.171 us", "12.3 us"
std::string FormatCount(double count);          // "5,712,032"
std::string FormatBytesPerSecond(double rate);  // "12.3 GB/s"; 1 GB is 10^9 bytes
std::string FormatBytes(uint64_t bytes);        // "64 bytes", "4 KiB"
std::string FormatRatio(double ratio);          // "1.41 x"

// Lines of cells; every column as wide as its widest cell. The first `left_columns` columns are
// aligned to the left, the others to the right. Ends with a newline.
std::string AlignColumns(const std::vector<std::vector<std::string>>& lines, size_t left_columns);

}  // namespace verbena::bench
