#pragma once

#include "../backend.hpp"
#include "tiles.hpp"

#include <string>
#include <type_traits>

namespace penstock::train::host {

/// c = a b on tiles of c, by single-threaded OpenBLAS calls: the bits do not depend on how many threads share the
/// tiles. Call inside the arena.
template <class T>
  requires std::is_floating_point_v<T>
void multiply(const product& what, const tile_shape& tile, const T* a, const T* b, T* c, const T* bias);

/// The same on tiles whose extents depend on the shape, the type and OpenBLAS's kernels for this processor alone.
template <class T>
  requires std::is_floating_point_v<T>
void multiply(const product& what, const T* a, const T* b, T* c, const T* bias);

/// The same of 16-bit factors, whose products are summed in float32: c and bias are of type C, float or S.
/// Slow: it widens the factors piece by piece.
template <class S, class C>
  requires(sizeof(S) == 2)
void multiply(const product& what, const S* a, const S* b, C* c, const C* bias);

/// OpenBLAS's version and its kernels for this processor, which the bits of products depend on.
std::string products_of_host();

/// Must be called once before the first product: makes OpenBLAS compute on its caller's thread alone, in this process.
void use_single_threaded_blas();

}  // namespace penstock::train::host
