// SPDX-License-Identifier: Apache-2.0
//
// What sender and receiver of both wires share. Any thread.

#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

constexpr double kGiB = 1024.0 * 1024 * 1024;

// User and system time of this process.
inline double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One word of each page: enough to see a page that did not come, too little to cost time.
inline uint64_t SumOfPages(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += 4096) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    sum += word;
  }
  return sum;
}

inline void FillPages(std::span<std::byte> bytes) {
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += 4096) {
    const uint64_t word = 0x9e3779b97f4a7c15 * (at + 1);
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
}

inline void PrintProgress(double share) {
  constexpr int kWidth = 40;
  const int full = static_cast<int>(share * kWidth);
  std::fprintf(stderr, "\r[%.*s%*s] %3.0f %%", full, "########################################",
               kWidth - full, "", share * 100);
}

inline void PrintRound(int round, double bytes, double seconds, double cpu_seconds) {
  std::printf("\r%-52s\r%d: %6.2f GiB/s  %5.2f CPU seconds per GiB, both sides\n", "", round,
              bytes / kGiB / seconds, cpu_seconds / (bytes / kGiB));
  std::fflush(stdout);
}
