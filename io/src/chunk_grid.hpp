#pragma once

#include "box.hpp"

#include <cstdint>
#include <vector>

namespace penstock::io {

/// The chunks of a dataset, numbered in C order.
class chunk_grid {
 public:
  /// Throws failure where the number of chunks overflows.
  chunk_grid(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk_shape);

  std::size_t rank() const noexcept { return rank_; }
  std::uint64_t chunks() const noexcept { return chunks_; }
  const extents& chunk_shape() const noexcept { return chunk_; }
  const extents& shape() const noexcept { return shape_; }
  const extents& counts() const noexcept { return counts_; }
  /// Chunks that lie side by side at one position of axis `axis`.
  std::uint64_t across(std::size_t axis) const noexcept { return counts_[axis] ? chunks_ / counts_[axis] : 0; }

  /// Numbers of chunks along each axis (not elements) as one number, and back.
  std::uint64_t number(const extents& at) const noexcept;
  extents position(std::uint64_t number) const noexcept;

  /// The chunk at `at` as far as it lies inside the dataset.
  box inside(const extents& at) const noexcept;
  /// Whether a part of the chunk lies past the dataset's end.
  bool partial(const box& inside) const noexcept;

 private:
  std::size_t rank_ = 0;
  extents shape_{}, chunk_{}, counts_{};
  std::uint64_t chunks_ = 1;
};

}  // namespace penstock::io
