#pragma once

#include "counting.hpp"

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// The threads that share a row, as row-wise functors see them: here one. Its like in a build with CUDA is
/// cuda/lanes.hpp.
struct one_lane {
  static constexpr std::size_t index() noexcept { return 0; }
  static constexpr std::size_t count() noexcept { return 1; }

  /// The sum, largest and smallest value over the lanes, in all of them.
  template <class T>
  static T sum(T value) noexcept {
    return value;
  }
  template <class T>
  static T largest(T value) noexcept {
    return value;
  }
  template <class T>
  static T smallest(T value) noexcept {
    return value;
  }
  /// What the lanes wrote is seen by all of them.
  static void join() noexcept {}

  static void note_first(std::uint64_t& where, std::uint64_t row) noexcept { host::note_first(where, row); }
  static void add_one(std::uint64_t& where) noexcept { host::add_one(where); }
};

}  // namespace penstock::train
