#pragma once

#include <algorithm>
#include <cstddef>

namespace penstock::train {

/// How arrays of the same length, worked on together, pass through a ring of a few places, piece by piece. Pure.
struct piece_ring {
  std::size_t elements = 0;  ///< of each array
  std::size_t piece = 0;     ///< elements of each array in a piece; the last piece may be shorter

  /// One piece arrives, one is worked on, one leaves, and one waits.
  static constexpr std::size_t places = 4;
  /// Pieces are a multiple of so many elements, which keeps them aligned.
  static constexpr std::size_t granularity = 128;

  std::size_t pieces() const noexcept { return piece == 0 ? 0 : (elements + piece - 1) / piece; }
  std::size_t first(std::size_t n) const noexcept { return n * piece; }
  std::size_t count(std::size_t n) const noexcept { return std::min(piece, elements - first(n)); }
  static std::size_t place(std::size_t n) noexcept { return n % places; }
  /// Elements of the ring, for so many arrays.
  std::size_t ring_elements(std::size_t arrays) const noexcept { return places * arrays * piece; }
};

/// The largest pieces with which the ring takes at most `ring_bytes`, and no more than a quarter of the arrays: what is
/// moved shall be most of what there was. A piece has piece_ring::granularity elements at least.
inline piece_ring plan_pieces(std::size_t elements, std::size_t arrays, std::size_t element_bytes,
                              std::size_t ring_bytes) noexcept {
  if (elements == 0 || arrays == 0) return {};
  const std::size_t most = std::min(ring_bytes, elements * arrays * element_bytes / 4);
  const std::size_t piece = most / (piece_ring::places * arrays * element_bytes);
  return {elements, std::max(piece / piece_ring::granularity, std::size_t{1}) * piece_ring::granularity};
}

}  // namespace penstock::train
