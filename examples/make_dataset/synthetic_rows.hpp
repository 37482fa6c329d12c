#pragma once

#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace examples {

/// A classification task that can be learned, made from arithmetic alone: the rows of a class lie around a centre of
/// its own, with noise of standard deviation 1 in each column; any two centres are about 5.6 apart. Every value is a
/// function of (seed, row, column), so that rows can be made in any order and on any number of threads.
struct synthetic_task {
  std::uint64_t columns = 1024;
  std::uint64_t classes = 10;
  std::uint64_t seed = 0;
  penstock::type element = penstock::type::float32;

  std::int32_t label(std::uint64_t row) const noexcept;
  /// Fills `out` with whole rows from `first_row` on. Integers hold the value times 24, unsigned ones with 128 added,
  /// and the nearest they can hold.
  void fill(std::uint64_t first_row, std::span<std::byte> out) const;
  std::uint64_t row_bytes() const noexcept { return columns * penstock::size_of(element); }
};

}  // namespace examples
