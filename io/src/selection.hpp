#pragma once

#include "box.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace penstock::io {

/// `count` indices along one axis: `block` of them side by side, `stride` from block to block; the last may be cut
/// short.
struct index_blocks {
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t start = 0, stride = endless, block = endless, count = 0;

  std::uint64_t at(std::uint64_t n) const noexcept { return start + n / block * stride + n % block; }
  std::uint64_t below(std::uint64_t index) const noexcept;  ///< how many are smaller
  bool contains(std::uint64_t index) const noexcept { return below(index + 1) > below(index); }
};

/// A part of a product of indices: along each axis `count[k]` of them, from the first[k]-th on.
struct lattice {
  std::span<const index_blocks> axes;
  extents first{}, count{};

  bool empty() const noexcept;
};

/// Calls `visit` for the boxes that a lattice is made of within `shape`, grown to whole multiples of `unit` along each
/// axis and cut at `shape` again, and one for those that touch then. None comes twice.
void visit_boxes(const lattice& part, const extents& unit, const extents& shape,
                 const std::function<void(const box&)>& visit);

/// What a selection of HDF5 names, in C order: parts without a common value, each a product of indices. Pure
/// arithmetic, for numbers from a file: what would overflow is not made.
class selection {
 public:
  /// Without a part.
  explicit selection(std::size_t rank) : rank_(rank) {}
  /// All of a shape.
  static selection all(std::span<const std::uint64_t> shape);

  std::size_t rank() const noexcept { return rank_; }
  std::size_t parts() const noexcept { return axes_.size() / rank_; }
  std::span<const index_blocks> axes(std::size_t part) const noexcept {
    return std::span(axes_).subspan(part * rank_, rank_);
  }
  std::span<index_blocks> axes(std::size_t part) noexcept { return std::span(axes_).subspan(part * rank_, rank_); }
  std::size_t bytes() const noexcept { return axes_.capacity() * sizeof(index_blocks); }

  /// Adds a part. Where there are several, each is a box: one block along each axis. False, and nothing is added, where
  /// its indices are none that a selection can have.
  bool add(std::span<const index_blocks> axes);

  /// How many values there are; nothing where they cannot be counted.
  std::optional<std::uint64_t> size() const noexcept;
  /// Those of a part that lie in a box.
  lattice within(std::size_t part, const box& wanted) const noexcept;
  lattice whole(std::size_t part) const noexcept;

  // Of selections that can be counted.

  /// How many values come before a place, which need not be one of them.
  std::uint64_t before(const extents& place) const noexcept;
  /// The place of value `n`, which is smaller than size().
  extents place(std::uint64_t n) const noexcept;

 private:
  std::size_t rank_;
  std::vector<index_blocks> axes_;  // of one part after the other
};

}  // namespace penstock::io
