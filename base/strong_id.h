// SPDX-License-Identifier: Apache-2.0
//
// StrongId<Tag, T>: an integer with a type of its own, so that a connection id can't be passed
// where a call id is expected:
//
//   using CallId = StrongId<struct CallIdTag, uint32_t>;
//   CallId id(7);
//
// A value type, as cheap as T. It compares and hashes, and has no arithmetic: ids are names.

#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <ostream>
#include <type_traits>
#include <utility>

namespace verbena {

template <typename Tag, typename T>
class StrongId {
  static_assert(std::is_integral_v<T>);

 public:
  using ValueType = T;

  // The id 0. What 0 means (often "none") is the tag's owner to say.
  constexpr StrongId() = default;
  constexpr explicit StrongId(T value) : value_(value) {}

  constexpr T value() const { return value_; }

  friend constexpr auto operator<=>(StrongId, StrongId) = default;

  template <typename H>
  friend H AbslHashValue(H state, StrongId id) {
    return H::combine(std::move(state), id.value_);
  }

  // The + prints a one-byte id as a number too.
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << +id.value_; }

 private:
  T value_ = 0;
};

}  // namespace verbena

template <typename Tag, typename T>
struct std::hash<verbena::StrongId<Tag, T>> {
  std::size_t operator()(verbena::StrongId<Tag, T> id) const noexcept {
    return std::hash<T>()(id.value());
  }
};
