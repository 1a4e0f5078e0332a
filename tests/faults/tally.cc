// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/faults/tally.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace verbena::faults {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kFailuresLogged = 4;
constexpr size_t kAttemptsShown = 40;

milliseconds Between(SteadyTime from, SteadyTime to) {
  return std::chrono::duration_cast<milliseconds>(to - from);
}

// An attempt that failed, and not a call that was refused while the channel waited for the next.
bool TellsOfAnAttempt(const absl::Status& status) {
  return absl::StartsWith(status.message(), "no connection to") &&
         !absl::StrContains(status.message(), "the next attempt is made in");
}

// The end of a connection that was there.
bool TellsOfTheConnection(const absl::Status& status) {
  return absl::StartsWith(status.message(), "the connection to");
}

}  // namespace

void Tally::NoteFault(SteadyTime time) {
  std::lock_guard lock(mutex_);
  fault_ = time;
  std::erase_if(failed_attempts_, [time](SteadyTime attempt) { return attempt < time; });
  failures_logged_ = 0;
  recovered_ = milliseconds(-1);
}

void Tally::NoteHealed(SteadyTime time) {
  std::lock_guard lock(mutex_);
  healed_ = time;
  awaits_recovery_ = true;
}

void Tally::NoteStarted() {
  std::lock_guard lock(mutex_);
  ++started_;
}

void Tally::Ends::Count(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      ++ok;
      break;
    case absl::StatusCode::kUnavailable:
      ++unavailable;
      break;
    case absl::StatusCode::kDeadlineExceeded:
      ++deadline_exceeded;
      break;
    default:
      ++other;
  }
}

void Tally::NoteEnded(SteadyTime started, const absl::Status& status, bool wrong) {
  const SteadyTime now = steady_clock::now();
  std::lock_guard lock(mutex_);
  all_.Count(status.code());
  wrong_answers_ += wrong ? 1 : 0;
  milliseconds& longest = status.ok() ? longest_ok_ : longest_failed_;
  longest = std::max(longest, Between(started, now));
  if (!status.ok()) NoteFailure(started, now, status);
  if (awaits_recovery_ && status.ok() && started >= healed_) {
    awaits_recovery_ = false;
    recovered_ = Between(healed_, now);
  }
}

void Tally::NoteFailure(SteadyTime started, SteadyTime now, const absl::Status& status) {
  if (TellsOfTheConnection(status)) {
    ++lost_;
    last_lost_ = now;
  }
  // All that waited for one attempt end with it, and were started before it ended.
  if (TellsOfAnAttempt(status) && (failed_attempts_.empty() || started > failed_attempts_.back())) {
    failed_attempts_.push_back(now);
  }
  if (failures_logged_++ < kFailuresLogged) {
    LOG(INFO) << Between(fault_, now).count() << " ms after the fault: " << status;
  }
}

void Tally::Publish(ScriptLink& link) const {
  std::lock_guard lock(mutex_);
  link.Set("started", started_);
  link.Set("in_flight", started_ - all_.count());
  link.Set("ok", all_.ok);
  link.Set("unavailable", all_.unavailable);
  link.Set("deadline_exceeded", all_.deadline_exceeded);
  link.Set("other_failures", all_.other);
  link.Set("wrong_answers", wrong_answers_);
  link.Set("longest_ok_ms", longest_ok_.count());
  link.Set("longest_failed_ms", longest_failed_.count());
  link.Set("lost", lost_);
  // -1: none since the fault.
  link.Set("last_lost_ms",
           lost_ == 0 || last_lost_ < fault_ ? -1 : Between(fault_, last_lost_).count());
  link.Set("recovered_ms", recovered_.count());
  link.Set("failed_attempts", failed_attempts_.size());
  std::string times;
  for (size_t i = 0; i < std::min(failed_attempts_.size(), kAttemptsShown); ++i) {
    absl::StrAppend(&times, i == 0 ? "" : " ", Between(fault_, failed_attempts_[i]).count());
  }
  link.Set("failed_attempts_at_ms", times);
}

}  // namespace verbena::faults
