#pragma once

#include "element.hpp"

#include <penstock/gpu/stream.hpp>

#include <cstddef>

namespace penstock::train {

/// Each row to mean 0 and variance 1, then times weight plus bias by column; `statistics` takes the mean and the
/// reciprocal deviation of each row.
template <class S>
void normalise_rows(gpu::stream_ref stream, std::size_t rows, std::size_t width, const S* x, const S* weight,
                    const S* bias, S* y, arithmetic<S>* statistics);

/// dx unless null, from the statistics that normalise_rows() gave; dy becomes dy times the normalised x.
template <class S>
void normalise_rows_gradient(gpu::stream_ref stream, std::size_t rows, std::size_t width, const S* x, const S* weight,
                             const arithmetic<S>* statistics, S* dy, S* dx);

}  // namespace penstock::train
