#pragma once

#include "element.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/predictor.hpp>

#include <cstddef>

namespace penstock::train {

/// What a predictor gives, from the outputs of the last layer.
template <class S>
void predicted_rows(gpu::stream_ref stream, prediction form, std::size_t rows, std::size_t width, const S* outputs,
                    arithmetic<S>* to);

}  // namespace penstock::train
