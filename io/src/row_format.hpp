#pragma once

#include "box.hpp"
#include "describe.hpp"

#include <penstock/io/location.hpp>

#include <string>
#include <vector>

namespace penstock::io {

/// What all segments of a field share: a row, as it is stored.
struct row_format {
  element_type element;
  std::vector<std::uint64_t> shape;
  std::size_t value_bytes = 0;
  std::size_t bytes = 0;
  bool labels = false;  ///< texts of variable length, as class codes

  std::size_t elements() const noexcept { return bytes / size_of(element.element); }
  bool same_as(const row_format& other) const;
  /// For people: "[3, 4] float32, byte-swapped".
  std::string text() const;
};

/// The part of the dataset that a location names. Throws failure where it does not lie inside.
box part_of(const dataset_description& d, const location& where);

/// Rows of `part`, of which `row_axis` counts rows. Throws failure where one holds more bytes than can be addressed.
row_format format_of(const dataset_description& d, const box& part, std::size_t row_axis);

}  // namespace penstock::io
