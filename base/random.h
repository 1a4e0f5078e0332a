// SPDX-License-Identifier: Apache-2.0
//
// Random: a small, fast pseudo-random generator with a seed. It is passed in and never global, so
// that a run can be repeated from its seed, on every platform and with every standard library.
//
// Threads: one at a time; give each thread its own (Split()). Not for secrets: the output is
// predictable.
//
// xoshiro256** 1.0 by Blackman and Vigna (https://prng.di.unimi.it), seeded through SplitMix64 as
// its authors advise. It also serves as a generator for <random> and std::shuffle, but their
// results differ between standard libraries; what must replay uses the members here.

#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace verbena {

// One step of SplitMix64: advances *state and returns 64 well mixed bits. Every state is good.
inline uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix64(&seed);
  }

  // Continues from a state that state() returned. REQUIRES: not all four words are zero.
  static Random FromState(const std::array<uint64_t, 4>& state) {
    Random random(0);
    random.state_ = state;
    return random;
  }

  // 64 uniform bits.
  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), without bias (Lemire, "Fast Random Integer Generation in an Interval",
  // 2019). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) {
    unsigned __int128 product = static_cast<unsigned __int128>(Next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t rejected_below = -bound % bound;  // 2^64 mod bound.
      while (static_cast<uint64_t>(product) < rejected_below) {
        product = static_cast<unsigned __int128>(Next()) * bound;
      }
    }
    return static_cast<uint64_t>(product >> 64);
  }

  // Uniform in [first, last], both included. REQUIRES: first <= last, not the full 64-bit range.
  uint64_t Between(uint64_t first, uint64_t last) { return first + Below(last - first + 1); }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // True with the given probability; always false at 0 and always true at 1.
  bool Chance(double probability) { return Unit() < probability; }

  // A generator of its own for a part of the program, so that how often one part draws does not
  // change what another part sees.
  Random Split() { return Random(Next()); }

  const std::array<uint64_t, 4>& state() const { return state_; }

  // What <random> and std::shuffle ask of a generator.
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return UINT64_MAX; }
  uint64_t operator()() { return Next(); }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace verbena
