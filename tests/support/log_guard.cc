// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/support/log_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace verbena {

LogGuard::LogGuard() { google::AddLogSink(this); }

LogGuard::~LogGuard() {
  google::RemoveLogSink(this);
  std::lock_guard lock(mutex_);
  for (const std::string& line : lines_) {
    const bool allowed = std::any_of(allowed_.begin(), allowed_.end(), [&](const auto& part) {
      return absl::StrContains(line, part);
    });
    if (!allowed) ADD_FAILURE() << "unexpected log line: " << line;
  }
}

void LogGuard::Allow(std::string part) {
  std::lock_guard lock(mutex_);
  allowed_.push_back(std::move(part));
}

int LogGuard::Count(const std::string& part) const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
    return absl::StrContains(line, part);
  }));
}

void LogGuard::send(google::LogSeverity severity, const char*, const char* base_filename, int line,
                    const google::LogMessageTime&, const char* message, size_t message_len) {
  if (severity < google::GLOG_WARNING) return;
  std::lock_guard lock(mutex_);
  lines_.push_back(
      absl::StrCat(base_filename, ":", line, ": ", absl::string_view(message, message_len)));
}

}  // namespace verbena
