// SPDX-License-Identifier: Apache-2.0
//
// Histogram: how uint64 values (latencies in nanoseconds, sizes in bytes) are distributed, in
// fixed memory and with a bounded relative error, for percentiles far into the tail.
//
// Threads: one at a time. Give each thread its own and Merge() them. Nothing here allocates; one
// histogram is about 58 KiB, so it does not belong on a small stack.
//
// Buckets are log-linear as in HdrHistogram (http://hdrhistogram.org): values below 256 have a
// bucket each; above, every power of two is cut into 128 buckets of equal width, so a bucket's
// width is at most 1/128 of its values.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace verbena {

class Histogram {
 public:
  // A few nanoseconds: one bit scan and three memory writes.
  void Record(uint64_t value) {
    ++buckets_[BucketOf(value)];
    ++count_;
    sum_ += value;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  // Adds all of other's values, as if they had been recorded here.
  void Merge(const Histogram& other);

  void Clear() { *this = Histogram(); }

  uint64_t Count() const { return count_; }

  // Exact. All three are 0 when nothing was recorded.
  uint64_t Min() const { return count_ == 0 ? 0 : min_; }
  uint64_t Max() const { return max_; }
  double Mean() const;

  // The smallest bucket bound such that at least `percent` percent of the values are at or below
  // it: at least the exact order statistic (nearest rank), and above it by at most 1/128. Never
  // outside [Min(), Max()]; exact below 256. 0 when nothing was recorded.
  // REQUIRES: 0 <= percent <= 100.
  uint64_t Percentile(double percent) const;

 private:
  static constexpr int kSubBits = 7;
  static constexpr std::size_t kSubBuckets = std::size_t{1} << kSubBits;
  // One group of kSubBuckets for the values below 128, then one for each leading bit 7..63.
  static constexpr std::size_t kBuckets = (64 - kSubBits + 1) * kSubBuckets;
  static_assert(kBuckets == 7424);

  static std::size_t BucketOf(uint64_t value) {
    if (value < kSubBuckets) return value;
    int shift = 63 - __builtin_clzll(value) - kSubBits;
    // value >> shift is in [128, 256); the group of shift s starts at (s + 1) * 128.
    return static_cast<std::size_t>(shift) * kSubBuckets + (value >> shift);
  }

  // The largest value that falls into the bucket.
  static uint64_t UpperBound(std::size_t bucket);

  std::array<uint64_t, kBuckets> buckets_ = {};
  uint64_t count_ = 0;
  unsigned __int128 sum_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
};

}  // namespace verbena
