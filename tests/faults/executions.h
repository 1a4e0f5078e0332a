// SPDX-License-Identifier: Apache-2.0
//
// How often each call was executed, by its id, in a file: so that it outlives a server that is
// killed, and its successor counts on.
//
// Threads: any.

#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "glog/logging.h"
#include "verbena/base/unique_fd.h"

namespace verbena::faults {

class Executions {
 public:
  // A byte each, of a file with holes; a test makes some ten thousand.
  static constexpr uint64_t kIdsMax = uint64_t{1} << 26;

  explicit Executions(const std::string& file) {
    UniqueFd fd(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    PCHECK(fd) << file;
    PCHECK(ftruncate(fd.get(), kIdsMax) == 0);
    void* memory = mmap(nullptr, kIdsMax, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    PCHECK(memory != MAP_FAILED);
    counts_ = static_cast<std::atomic<uint8_t>*>(memory);
  }
  ~Executions() { munmap(static_cast<void*>(counts_), kIdsMax); }
  Executions(const Executions&) = delete;
  Executions& operator=(const Executions&) = delete;

  // Whether it is the first execution.
  bool Count(uint64_t id) {
    CHECK_LT(id, kIdsMax);
    return counts_[id].fetch_add(1) == 0;
  }

 private:
  static_assert(sizeof(std::atomic<uint8_t>) == 1 && std::atomic<uint8_t>::is_always_lock_free);
  std::atomic<uint8_t>* counts_;
};

}  // namespace verbena::faults
