#include "chunk_grid.hpp"

#include "failure.hpp"

#include <algorithm>

namespace penstock::io {

chunk_grid::chunk_grid(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk_shape)
    : rank_(shape.size()) {
  for (std::size_t k = 0; k < rank_; ++k) {
    shape_[k] = shape[k];
    chunk_[k] = chunk_shape[k];
    counts_[k] = shape[k] / chunk_shape[k] + (shape[k] % chunk_shape[k] != 0);
    if (__builtin_mul_overflow(chunks_, counts_[k], &chunks_)) throw failure("it has more chunks than can be counted");
  }
}

std::uint64_t chunk_grid::number(const extents& at) const noexcept {
  std::uint64_t n = 0;
  for (std::size_t k = 0; k < rank_; ++k) n = n * counts_[k] + at[k];
  return n;
}

extents chunk_grid::position(std::uint64_t number) const noexcept {
  extents at{};
  for (std::size_t k = rank_; k-- > 0; number /= counts_[k]) at[k] = number % counts_[k];
  return at;
}

box chunk_grid::inside(const extents& at) const noexcept {
  box b;
  b.rank = rank_;
  for (std::size_t k = 0; k < rank_; ++k) {
    b.start[k] = at[k] * chunk_[k];
    b.count[k] = std::min(chunk_[k], shape_[k] - b.start[k]);
  }
  return b;
}

bool chunk_grid::partial(const box& inside) const noexcept {
  for (std::size_t k = 0; k < rank_; ++k)
    if (inside.count[k] != chunk_[k]) return true;
  return false;
}

}  // namespace penstock::io
