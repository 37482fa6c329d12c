#pragma once

#include <penstock/pipeline/order.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penstock::test {

/// The rows of an epoch, position by position.
inline std::vector<std::uint64_t> rows_of(const pipeline::order& order, std::uint64_t epoch) {
  std::vector<std::uint64_t> rows(order.rows());
  for (std::uint64_t p = 0; p < order.rows(); ++p) rows[p] = order.row(epoch, p);
  return rows;
}

inline std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

inline bool is_every_row_once(std::vector<std::uint64_t> rows, std::uint64_t count) {
  if (rows.size() != count) return false;
  std::sort(rows.begin(), rows.end());
  for (std::uint64_t r = 0; r < rows.size(); ++r)
    if (rows[r] != r) return false;
  return true;
}

/// Whether extents are the reading rows, position by position, and no two of them could be joined.
inline bool extents_are_the_reading_rows(const pipeline::order& order, std::uint64_t epoch) {
  std::vector<pipeline::extent> extents;
  order.read(epoch, 0, order.rows(), extents);
  std::uint64_t position = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    for (std::uint64_t r = 0; r < extents[i].count; ++r, ++position)
      if (order.reading_row(epoch, position) != extents[i].first + r) return false;
    if (i > 0 && extents[i - 1].first + extents[i - 1].count == extents[i].first) return false;
  }
  return position == order.rows();
}

}  // namespace penstock::test
