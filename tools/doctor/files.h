// SPDX-License-Identifier: Apache-2.0
//
// Reading the small files of sysfs and procfs. What cannot be read is absent: these files come and
// go with devices, and many answer with an error instead of a value. Any thread.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace verbena::doctor {

// The first 64 KiB, without white space at the ends.
std::optional<std::string> ReadText(const std::string& path);
// Decimal, or hexadecimal after "0x".
std::optional<uint64_t> ReadNumber(const std::string& path);
// Names in a folder, "a2" before "a10"; empty when there is no such folder.
std::vector<std::string> ListNames(const std::string& folder);
// The last part of what a symbolic link leads to; empty when it is none.
std::string LinkTargetName(const std::string& path);
bool Exists(const std::string& path);
// 0, or the errno of opening it for reading and writing.
int OpenErrno(const std::string& path);

}  // namespace verbena::doctor
