#pragma once

#include "element.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/model.hpp>

#include <cstddef>

namespace penstock::train {

/// Rows of two sides become one: from x on lie `rows` rows of `width` values of the first side, then those of the
/// second; y gets `rows` rows of joined_width(kind, width) values.
template <class S>
void join_rows(gpu::stream_ref stream, join kind, std::size_t rows, std::size_t width, const S* x, S* y);

/// dx, laid out as x, from the gradient of y.
template <class S>
void join_rows_gradient(gpu::stream_ref stream, join kind, std::size_t rows, std::size_t width, const S* x, const S* dy,
                        S* dx);

}  // namespace penstock::train
