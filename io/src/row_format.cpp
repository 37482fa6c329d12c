#include "row_format.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace penstock::io {

bool row_format::same_as(const row_format& other) const {
  return labels == other.labels && element.element == other.element.element &&
         element.swapped == other.element.swapped && shape == other.shape;
}

std::string row_format::text() const {
  return fmt::format("[{}] {}{}", fmt::join(shape, ", "), name_of(element.element),
                     element.swapped ? ", byte-swapped" : "");
}

box part_of(const dataset_description& d, const location& where) {
  box part;
  part.rank = d.rank;
  std::copy(d.info.shape.begin(), d.info.shape.end(), part.count.begin());
  if (where.row_axis >= std::max<std::size_t>(d.rank, 1))
    throw failure(fmt::format("axis {} cannot count its rows: it has {} axes", where.row_axis, d.rank));
  for (const auto& r : where.region) {
    if (r.axis >= d.rank || r.axis == where.row_axis)
      throw failure(fmt::format("axis {} cannot be cut: it has {} axes, and axis {} counts its rows", r.axis, d.rank,
                                where.row_axis));
    const auto extent = d.info.shape[r.axis];
    if (r.count == 0 || r.first > extent || r.count > extent - r.first)
      throw failure(fmt::format("indices {} + {} of axis {} do not lie inside its extent of {}", r.first, r.count,
                                r.axis, extent));
    part.start[r.axis] = r.first;
    part.count[r.axis] = r.count;
  }
  return part;
}

row_format format_of(const dataset_description& d, const box& part, std::size_t row_axis) {
  row_format f;
  f.element = *d.value.element;
  f.labels = d.value.labels;
  for (std::size_t k = 0; k < part.rank; ++k)
    if (k != row_axis) f.shape.push_back(part.count[k]);
  f.value_bytes = d.value.bytes;
  f.bytes = f.value_bytes;
  for (const auto extent : f.shape)
    if (__builtin_mul_overflow(f.bytes, extent, &f.bytes))
      throw failure("a row holds more bytes than can be addressed");
  f.shape.insert(f.shape.end(), d.value.shape.begin(), d.value.shape.end());
  return f;
}

}  // namespace penstock::io
