// SPDX-License-Identifier: Apache-2.0
//
// What became of a client's calls, and when, counted from the last fault and from its end.
//
// Threads: any.

#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "verbena/tests/faults/script_link.h"

namespace verbena::faults {

class Tally {
 public:
  // What follows is counted from that time.
  void NoteFault(SteadyTime time);
  // Recovered is who then gets an answer to a call that starts later.
  void NoteHealed(SteadyTime time);
  void NoteStarted();
  // `wrong`: the answer is not the one to the question.
  void NoteEnded(SteadyTime started, const absl::Status& status, bool wrong);
  // Sets what it knows, by names that say what they are.
  void Publish(ScriptLink& link) const;

 private:
  struct Ends {
    uint64_t ok = 0;
    uint64_t unavailable = 0;
    uint64_t deadline_exceeded = 0;
    uint64_t other = 0;
    uint64_t count() const { return ok + unavailable + deadline_exceeded + other; }
    void Count(absl::StatusCode code);
  };
  void NoteFailure(SteadyTime started, SteadyTime now, const absl::Status& status);

  mutable std::mutex mutex_;  // Guards all of it.
  uint64_t started_ = 0;
  uint64_t wrong_answers_ = 0;
  Ends all_;
  std::chrono::milliseconds longest_ok_{0};
  std::chrono::milliseconds longest_failed_{0};
  SteadyTime fault_;
  // Calls that ended with their connection.
  uint64_t lost_ = 0;
  SteadyTime last_lost_;
  bool awaits_recovery_ = false;
  SteadyTime healed_;
  std::chrono::milliseconds recovered_{-1};
  std::vector<SteadyTime> failed_attempts_;  // To connect, since the fault.
  uint64_t failures_logged_ = 0;             // Since the fault.
};

}  // namespace verbena::faults
