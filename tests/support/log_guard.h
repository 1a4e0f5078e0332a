// SPDX-License-Identifier: Apache-2.0
//
// LogGuard: a test that logs a warning or an error it did not announce fails.
//
// Threads: log from any; Allow before what logs starts. Lifetime: a member of the fixture, declared
// before everything that logs.

#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "glog/logging.h"

namespace verbena {

class LogGuard final : public google::LogSink {
 public:
  LogGuard();
  // Adds a test failure for each line that was not allowed.
  ~LogGuard() override;

  // Lines that contain `part` are expected, and not required.
  void Allow(std::string part);
  // Lines so far, allowed or not, that contain `part`.
  int Count(const std::string& part) const;

 private:
  void send(google::LogSeverity severity, const char* full_filename, const char* base_filename,
            int line, const google::LogMessageTime& time, const char* message,
            size_t message_len) override;

  mutable std::mutex mutex_;
  std::vector<std::string> allowed_;
  std::vector<std::string> lines_;
};

}  // namespace verbena
