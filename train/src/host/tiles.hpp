#pragma once

#include "../backend.hpp"

#include <cstddef>
#include <string_view>

namespace penstock::train::host {

/// How a product is cut: each tile of c takes one OpenBLAS call for each piece of the depth, in order. Constants of the
/// shape, since another cut is another order of sums, and so other bits.
struct tile_shape {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t depth = 0;

  friend bool operator==(const tile_shape&, const tile_shape&) = default;
};

/// The tiles of a product of elements of so many bytes. `unpacked`: OpenBLAS has kernels that take small factors as
/// they lie, without copying them first.
tile_shape tiles_of(const product& what, std::size_t element_bytes, bool unpacked) noexcept;

/// Whether OpenBLAS's kernels of this name, from openblas_get_corename(), are such.
bool has_unpacked_kernels(std::string_view core) noexcept;

}  // namespace penstock::train::host
