#pragma once

#include <penstock/pipeline/selection.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::pipeline {

/// A set of the rows [0, rows): one bit each, and a count for every 512, so that the row at a place among the chosen
/// ones is found by halving. Built first, then read from any threads.
class row_set {
 public:
  /// All rows.
  explicit row_set(std::uint64_t rows);
  /// Bytes that a set of so many rows takes.
  static std::size_t bytes_for(std::uint64_t rows) noexcept;

  bool contains(std::uint64_t row) const noexcept { return words_[row / 64] >> (row % 64) & 1; }
  void remove(std::uint64_t row) noexcept { words_[row / 64] &= ~(std::uint64_t{1} << (row % 64)); }
  void keep_only(const std::vector<extent>& ranges);
  /// Counts; after the last change, before what follows.
  void count();

  std::uint64_t size() const noexcept { return before_.back(); }
  /// The row at `place` < size().
  std::uint64_t row(std::uint64_t place) const noexcept;
  /// How many chosen rows lie before `row` <= all rows.
  std::uint64_t chosen_before(std::uint64_t row) const noexcept;
  /// Appends the rows at the places [first, first + count), neighbours joined.
  void append(std::uint64_t first, std::uint64_t count, std::vector<extent>& out) const;
  /// A number that tells sets apart.
  std::uint64_t fingerprint() const noexcept;

 private:
  std::uint64_t rows_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> before_;  ///< chosen rows before each group of words, and all of them at the end
};

/// Appends an extent, joined to the last one where it goes on from it.
void append_extent(std::vector<extent>& out, std::uint64_t first, std::uint64_t count);

}  // namespace penstock::pipeline
