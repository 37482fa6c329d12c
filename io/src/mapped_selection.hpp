#pragma once

#include "identifier.hpp"
#include "selection.hpp"

#include <optional>
#include <span>

namespace penstock::io {

/// One side of a mapping of a virtual dataset, as it is written: all of a dataset, a regular selection that may have no
/// end along one axis, or an irregular one. Others, and what no selection can be, are not understood.
class mapped_selection {
 public:
  /// Needs the guard. Throws failure.
  explicit mapped_selection(hid_t space);

  /// Where it may lie in a dataset of `rank` axes.
  box bounds(std::size_t rank) const noexcept;

  /// What it names in a dataset of that shape, without an end: `along` indices of that axis at most. Nothing where it
  /// is not understood, or of another rank. `made` holds it where it depends on that.
  const selection* of(std::span<const std::uint64_t> shape, std::uint64_t along, std::optional<selection>& made) const;

  /// Whether it is all of a dataset, whatever shape that has.
  bool is_all() const noexcept { return all_; }
  bool is_endless() const noexcept { return endless_.has_value(); }
  /// Indices along its endless axis that lie within the shape.
  std::uint64_t along(std::span<const std::uint64_t> shape) const noexcept;

  /// Whether it is blocks without an end, each of one source, where names are numbered.
  bool has_blocks(std::size_t rank) const noexcept { return endless_ && block_ > 0 && axes_.size() == rank; }
  /// Blocks that may touch a box: the first of them, and how many.
  std::pair<std::uint64_t, std::uint64_t> blocks_near(const box& wanted) const noexcept;
  /// One of them, which may be near.
  std::optional<selection> block(std::uint64_t number) const;

  std::size_t bytes() const noexcept;

 private:
  void read_regular(hid_t space);
  void read_boxes(hid_t space);

  bool all_ = false;
  std::optional<selection> values_;     // where it has an end
  std::optional<std::size_t> endless_;  // the axis
  std::vector<index_blocks> axes_;      // where it has none
  std::uint64_t block_ = 0, step_ = 0;  // along that
};

}  // namespace penstock::io
