#pragma once

#include "box.hpp"
#include "identifier.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::io {

/// A part of a virtual dataset and the part of a source that it shows: value by value, along each axis of the virtual
/// one.
struct virtual_mapping {
  std::string file, dataset;  ///< as they are written; "." is the virtual dataset's own file
  box target;                 ///< in the virtual dataset: start, and number of positions, `step` apart
  extents step{};
  bool whole_source = false;  ///< the source's own shape says how much
  box source;                 ///< start, and number of positions, `source_step` apart along the first axis
  std::uint64_t source_step = 1;
  std::array<std::size_t, max_rank> target_axis{};  ///< of each axis of the source that is longer than 1

  /// The axis of the source that is axis `axis` of the virtual dataset; 0 where the source has one position along it.
  std::size_t source_axis_of(std::size_t axis) const noexcept;

  /// Rows of the virtual dataset, along `row_axis`, over which `rows` of the source are spread.
  std::uint64_t shown_rows(std::uint64_t rows, std::size_t row_axis) const noexcept;

  /// Fits the mapping to the source as it is: pairs the axes longer than 1. False where the source is smaller than the
  /// mapping, or shaped otherwise.
  bool resolve(const std::vector<std::uint64_t>& source_shape);
};

/// Names of a source; "." is the virtual dataset's own file.
struct source_name {
  std::string file, dataset;
};

/// Names of a source as they are written, or of many, where %b stands for the numbers 0, 1, 2, ...: as many as there
/// are.
struct written_source {
  std::string file, dataset;

  bool is_numbered() const;
  source_name at(std::uint64_t number) const;
};

/// The sources of all mappings in the creation properties.
std::vector<written_source> written_sources(hid_t creation);

/// How many mappings there are in the creation properties.
std::size_t count_mappings(hid_t creation);

/// The mappings in the creation properties. Nothing where one is not made of boxes that are fixed: names with %b,
/// unlimited or irregular selections, several blocks of more than one index, steps in a source but along its first
/// axis.
std::optional<std::vector<virtual_mapping>> read_virtual_mappings(hid_t creation);

}  // namespace penstock::io
