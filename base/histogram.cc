// SPDX-License-Identifier: Apache-2.0

#include "verbena/base/histogram.h"

#include <algorithm>
#include <cmath>

#include "glog/logging.h"

namespace verbena {

void Histogram::Merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::Mean() const {
  return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

uint64_t Histogram::Percentile(double percent) const {
  DCHECK(percent >= 0.0 && percent <= 100.0) << percent;
  if (count_ == 0) return 0;
  // 99.9 has no exact binary form, and 99.9 % of 1000 must be rank 999 and not 1000. So what is
  // above a whole number by rounding only does not count as the next rank.
  double exact = percent / 100.0 * static_cast<double>(count_);
  double rank = std::max(1.0, std::ceil(exact * (1.0 - 1e-12)));
  uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (static_cast<double>(seen) >= rank) return std::clamp(UpperBound(i), min_, max_);
  }
  return max_;
}

uint64_t Histogram::UpperBound(std::size_t bucket) {
  if (bucket < 2 * kSubBuckets) return bucket;
  std::size_t shift = bucket / kSubBuckets - 1;
  uint64_t top_bits = bucket - shift * kSubBuckets;  // In [128, 256), as in BucketOf().
  // The next bucket's first value, less one. For the last bucket this wraps to 2^64 - 1, rightly.
  return ((top_bits + 1) << shift) - 1;
}

}  // namespace verbena
