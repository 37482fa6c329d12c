#pragma once

#include "../backend.hpp"

namespace penstock::train::host {

/// c = a b on tiles of c whose extents depend on the shape alone, each by a single-threaded OpenBLAS call over the
/// whole depth: the bits do not depend on how many threads share the tiles. Call inside the arena.
template <class T>
void multiply(const product& what, const T* a, const T* b, T* c, const T* bias);

/// Must be called once before the first product: makes OpenBLAS compute on its caller's thread alone, in this process.
void use_single_threaded_blas();

}  // namespace penstock::train::host
