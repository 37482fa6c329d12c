#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::pipeline {

/// The weights of rows as the places where they begin on a scale from 0 to 2^63: a number drawn from it falls to a row
/// with probability weight / sum, to one part in 2^53. 8 bytes a row. Built first, then read from any threads.
class weight_table {
 public:
  explicit weight_table(std::uint64_t rows) { starts_.reserve(rows); }
  static std::size_t bytes_for(std::uint64_t rows) noexcept { return rows * sizeof(std::uint64_t); }

  /// The next row's weight: finite, not negative.
  void add(double weight);
  /// After the last row. Throws std::invalid_argument where no weight is above 0, or their sum is not finite.
  void finish();

  std::uint64_t rows() const noexcept { return starts_.size(); }
  /// The row that `number` < 2^63 falls to.
  std::uint64_t place_at(std::uint64_t number) const noexcept;
  /// A number that tells tables apart.
  std::uint64_t fingerprint() const noexcept;

 private:
  std::vector<std::uint64_t> starts_;  ///< until finish(): the bits of the weights
};

}  // namespace penstock::pipeline
