// SPDX-License-Identifier: Apache-2.0
//
// PeerWatch: decides when a silent peer is asked whether it is there, and when it is taken for gone
// (docs/decisions/0004-a-probe-that-the-nic-answers.md). Every D/6, D being the detection time,
// somebody looks:
//
//   heard since the last look                   nothing to do
//   silent, and somebody waits for the peer     kAsk: send a probe, which its NIC has to answer
//   silent for a whole D                        kAsk, too
//   three looks (D/2) after kAsk, still silent  kSuspect: poll until nothing is left, then IsLost()
//
// So a peer that goes away right after a look is heard of in the next one (1), asked in the one
// after (2) and suspected three later (5): D/6 are left for judging it. Counted are looks, and not
// only time: what a thread that was stuck or stopped did not look for, it did not miss.
//
// Threads: the poller's. Pure arithmetic; the time is passed in.

#pragma once

#include <chrono>
#include <cstdint>

namespace verbena {

class PeerWatch {
 public:
  enum class Verdict { kFine, kAsk, kSuspect };

  // Looks in one detection time. More would leave less time to answer; five would be late.
  static constexpr uint32_t kLooks = 6;
  static constexpr uint32_t kLooksToAnswer = 3;
  // Where a peer has to speak first there is no probe before it does; and it may be slow, as that
  // takes its thread. Ten detection times.
  static constexpr uint32_t kLooksToSpeakFirst = 10 * kLooks;

  // 0: never suspects.
  explicit PeerWatch(std::chrono::milliseconds detection_time)
      : look_ns_(std::chrono::nanoseconds(detection_time).count() / kLooks) {}

  bool enabled() const { return look_ns_ != 0; }
  int64_t look_interval_ns() const { return look_ns_; }

  // No probe can be sent until something is heard.
  void ExpectFirstWord() { looks_to_answer_ = kLooksToSpeakFirst; }

  // `heard` counts what only a living peer can bring about. `awaited()`: whether somebody waits for
  // it now; asked only when it is silent.
  template <class Awaited>
  Verdict Look(int64_t now_ns, uint64_t heard, Awaited&& awaited) {
    if (heard != heard_) {
      heard_ = heard;
      suspected_ = false;
      asked_ = false;
      quiet_looks_ = 0;
      looks_to_answer_ = kLooksToAnswer;
      return Verdict::kFine;
    }
    if (!asked_) {
      if (++quiet_looks_ < kLooks && !awaited()) return Verdict::kFine;
      asked_ = true;
      asked_ns_ = now_ns;
      unanswered_looks_ = 0;
      return Verdict::kAsk;
    }
    if (suspected_) return Verdict::kFine;  // Still to be judged.
    silent_ns_ = now_ns - asked_ns_;
    // The time, too, since looks may come closer together when connections come and go; half a look
    // less, as timers are not exact.
    if (++unanswered_looks_ < looks_to_answer_ ||
        silent_ns_ < looks_to_answer_ * look_ns_ - look_ns_ / 2) {
      return Verdict::kFine;
    }
    suspected_ = true;
    return Verdict::kSuspect;
  }

  // Once after kSuspect: whether nothing was heard still.
  bool IsLost(uint64_t heard) {
    const bool lost = suspected_ && heard == heard_;
    suspected_ = false;
    return lost;
  }
  bool suspected() const { return suspected_; }
  int64_t silent_ns() const { return silent_ns_; }  // After kSuspect: since kAsk.

 private:
  const int64_t look_ns_;
  uint64_t heard_ = 0;
  int64_t asked_ns_ = 0;
  int64_t silent_ns_ = 0;
  uint32_t quiet_looks_ = 0;
  uint32_t unanswered_looks_ = 0;
  uint32_t looks_to_answer_ = kLooksToAnswer;
  bool asked_ = false;
  bool suspected_ = false;
};

}  // namespace verbena
