#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace examples {

/// Neighbouring rows.
struct rows_in_a_row {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  friend bool operator==(const rows_in_a_row&, const rows_in_a_row&) = default;
};

/// Appends rows that come in order: neighbours become one entry.
inline void add(const rows_in_a_row& rows, std::vector<rows_in_a_row>& to) {
  if (!to.empty() && to.back().first + to.back().count == rows.first)
    to.back().count += rows.count;
  else
    to.push_back(rows);
}

/// The rows of all parts, which may overlap and come in any order, in order.
inline std::vector<rows_in_a_row> joined(std::vector<rows_in_a_row> parts) {
  std::ranges::sort(parts, {}, &rows_in_a_row::first);
  std::vector<rows_in_a_row> all;
  for (const rows_in_a_row& part : parts) {
    const std::uint64_t end = part.first + part.count;
    const std::uint64_t first = all.empty() ? part.first : std::max(part.first, all.back().first + all.back().count);
    if (first < end) add({first, end - first}, all);
  }
  return all;
}

/// Those of `rows` that are none of `others`; both in order, and so is what is left.
inline std::vector<rows_in_a_row> without(const std::vector<rows_in_a_row>& rows,
                                          const std::vector<rows_in_a_row>& others) {
  std::vector<rows_in_a_row> left;
  auto other = others.begin();
  for (const rows_in_a_row& part : rows) {
    const std::uint64_t end = part.first + part.count;
    for (std::uint64_t at = part.first; at < end;) {
      while (other != others.end() && other->first + other->count <= at) ++other;
      const std::uint64_t until = other == others.end() ? end : std::clamp(other->first, at, end);
      if (until > at) add({at, until - at}, left);
      at = until == end ? end : std::min(end, other->first + other->count);
    }
  }
  return left;
}

/// How many there are in all parts.
inline std::uint64_t count_of(const std::vector<rows_in_a_row>& parts) {
  std::uint64_t rows = 0;
  for (const rows_in_a_row& part : parts) rows += part.count;
  return rows;
}

}  // namespace examples
